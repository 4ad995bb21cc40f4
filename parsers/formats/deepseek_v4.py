"""DeepSeek V3.2, V4 and V4.1: DSML calls, tags marked with a token that nobody types."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamsieve.parsers.arguments.schema_types import JSON, Typing, convert_or_json
from streamsieve.parsers.calls.labels import QUOTED
from streamsieve.parsers.calls.parameter import Head, Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.formats.deepseek_v3 import ENDS
from streamsieve.parsers.reasoning import ReasoningSpan, Switch
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.scanner import Malformed, Reader, Reading

_VALUE = re.compile(r'[^"]*')


def _attribute(reader: Reader, name: str) -> Reading[str]:
    """Take an attribute that has to come, and return its value."""
    yield from reader.space()
    yield from reader.take(f'{name}="')
    value = yield from reader.run(_VALUE)
    yield from reader.take('"')
    return value


def _typed(types: frozenset[str], is_string: bool) -> frozenset[str]:
    """What the schema says, else what the attribute does."""
    return types if types or is_string else JSON


@dataclass(frozen=True, kw_only=True)
class DsmlParameter(Parameter):
    """`OPEN name="KEY" [string="true" or "false"]>`: the attribute types what the schema does not."""

    def read_head(self, reader: Reader, opener: str, schema: JsonSchema | None, typing: Typing) -> Reading[Head]:
        """Take the attributes; without a type of its own a value is text, or JSON where it is said to be no string."""
        key = yield from _attribute(reader, "name")
        is_string = None
        if (yield from reader.peek_after_space()) == "s":
            is_string = yield from _attribute(reader, "string")
            if is_string not in ("true", "false"):
                raise Malformed
        yield from reader.space()
        yield from reader.take(">")
        return key, _typed(typing.types(schema, key), is_string == "true")

    def types_of(self, value: object, schema: JsonSchema | None, key: str, typing: Typing) -> frozenset[str]:
        """The types of the schema, or those that the attribute leaves."""
        return _typed(typing.types(schema, key), isinstance(value, str))

    def write_head(self, key: str, value: object, space: str) -> str:
        """The opener with both attributes."""
        return f'{self.open} name="{key}" string="{"true" if isinstance(value, str) else "false"}">'


def _dsml(space: str, *groups: str) -> TaggedCalls:
    """The calls of one dialect: `space` follows the mark in each tag; groups are closed as the first is."""
    mark, end = f"<｜DSML｜{space}", f"</｜DSML｜{space}"
    closer = f"{end}{groups[0]}>"
    parameter = f"{mark}parameter"
    return TaggedCalls(
        groups=tuple((f"{mark}{group}>", closer) for group in groups),
        bare_calls="calls",
        thinking_enders=tuple(f"{mark}{group}>" for group in groups),
        openers=(f"{mark}invoke name=",),
        closers=(f"{end}invoke>",),
        label=QUOTED,
        name_close=">",
        parameter=DsmlParameter(
            open=parameter,
            key_close=">",
            value_close=f"{end}parameter>",
        ),
        typing=Typing(convert=convert_or_json),
        group_holds="all calls",
        ends_unclosed_value=(f"{parameter} name=",),
        ends_unclosed_call=(f"{mark}invoke name=", closer, *(f"{mark}{group}>" for group in groups)),
    )


_THINKING = ReasoningSpan(
    pairs=(("<think>", "</think>"),),
    leading="closer",
    ends_at_call=True,
    switch=Switch(keys=("thinking", "enable_thinking"), level=("reasoning_effort", "none")),
    switched_off="marked",
    turn_heads=("<｜Assistant｜>",),
)

DEEPSEEK_V32 = Format(
    name="deepseek_v32", tool_names=("deepseek_v32", "deepseekv32"), calls=_dsml("", "function_calls"), ends=ENDS
)

DEEPSEEK_V4 = Format(
    name="deepseek_v4",
    tool_names=("deepseek_v4",),
    reasoning_names=("deepseek_v4",),
    reasoning=_THINKING,
    calls=_dsml("", "tool_calls", "toolcalls", "tool"),
    ends=ENDS,
)

DEEPSEEK_V41 = Format(
    name="deepseek_v41",
    tool_names=("deepseek_v41",),
    reasoning_names=("deepseek_v41",),
    reasoning=_THINKING,
    calls=_dsml(" ", "calls"),
    ends=ENDS,
)

FORMATS = (DEEPSEEK_V32, DEEPSEEK_V4, DEEPSEEK_V41)
