"""rednote dots: blocks of calls in invoke and parameter tags, or with one call as a JSON object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from streamsieve.parsers.arguments.schema_place import parameters_place
from streamsieve.parsers.arguments.schema_types import Typing
from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.json_object import CallObject
from streamsieve.parsers.calls.labels import Label
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Reading

_BLOCK = ("<dots_function_call>", "</dots_function_call>")
_NAME = Label(quotes="\"'", unquoted=True, attribute="name")


def _types(parameters: JsonSchema | None, key: str) -> frozenset[str]:
    """The first type that is not null."""
    types = parameters_place(parameters).member(key).types
    return frozenset([*(one for one in types if one != "null"), *types][:1])


@dataclass(frozen=True, kw_only=True)
class DotsCalls(TaggedCalls):
    """Tagged calls, and `element` where a block holds one JSON object instead."""

    element: CallObject

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one call, its opener taken, or the object that comes."""
        if opener:
            yield from super().read(calls, opener)
        else:
            yield from self.element.read(calls)
            calls.end()

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """Tagged calls in one block; where a value would lose white space in tags, a JSON object a block."""
        if all(map(_is_trimmed, calls)):
            return super().write(calls, request)
        return "\n".join(f"{_BLOCK[0]}\n{self.element.write(call)}\n{_BLOCK[1]}" for call in calls)


def _is_trimmed(call: ToolCall) -> bool:
    values = json.loads(call.arguments).values()
    return all(value == value.strip() for value in values if isinstance(value, str))


DOTS = Format(
    name="dots",
    tool_names=("dots",),
    calls=DotsCalls(
        groups=(_BLOCK,),
        group_starts=("{",),
        openers=("<invoke",),
        closers=("</invoke>",),
        label=_NAME,
        name_close=">",
        parameter=Parameter(open="<parameter", label=_NAME, key_close=">", value_close="</parameter>"),
        element=CallObject(argument_keys=("arguments", "parameters")),
        ends_unclosed_call=("<invoke", *_BLOCK),
        typing=Typing(_types),
        trim="space",
        group_holds="all calls",
    ),
    ends=("<|endofassistant|>",),
)

FORMATS = (DOTS,)
