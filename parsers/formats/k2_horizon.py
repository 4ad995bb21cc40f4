"""IFM K2 Horizon: calls as key and value tags, as such tags with types, or as JSON, whichever the request asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamsieve.parsers.arguments.schema_types import JSON_TYPES, Typing
from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.call_block import CallBlock
from streamsieve.parsers.calls.json_object import JsonObjectCalls
from streamsieve.parsers.calls.parameter import Head, Parameter
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.errors import unknown_choice
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Malformed, Reader, Reading
from streamsieve.parsers.tag_parts import sequence

_GROUP = ("<ifm|tool_calls>", "</ifm|tool_calls>")
_CALL = ("<ifm|tool_call>", "</ifm|tool_call>")
_TYPE_OPEN, _TYPE_CLOSE = "<ifm|arg_type>", "</ifm|arg_type>"
_TYPE = re.compile(r"[^<]*")
_ANY = "any"
_TYPES = frozenset({*JSON_TYPES.values(), _ANY})


class TypedParameter(Parameter):
    """A parameter with a type tag between its key and its value."""

    def read_head(self, reader: Reader, opener: str, schema: JsonSchema | None, typing: Typing) -> Reading[Head]:
        """Take key and type. Raises Malformed for a type that is missing, or that the schema does not allow."""
        key = yield from self.read_key(reader, opener)
        yield from reader.space()
        yield from reader.take_tag(_TYPE_OPEN)
        said = yield from reader.run(_TYPE)
        yield from reader.take_tag(_TYPE_CLOSE)
        yield from self.open_value(reader)
        return key, _narrowed(typing.types(schema, key), said.partition("[")[0].strip())

    def types_of(self, value: object, schema: JsonSchema | None, key: str, typing: Typing) -> frozenset[str]:
        """The type that the tag says."""
        return _narrowed(typing.types(schema, key), _said(value))

    def write_head(self, key: str, value: object, space: str) -> str:
        """The key and the type of the value."""
        return f"{super().write_head(key, value, space)}{space}{_TYPE_OPEN}{_said(value)}{_TYPE_CLOSE}"


def _said(value: object) -> str:
    """The type of a value as the tag says it."""
    return JSON_TYPES[type(value)]


def _narrowed(types: frozenset[str], said: str) -> frozenset[str]:
    """What a type tag leaves of a schema's types."""
    if said not in _TYPES or (types and said not in types | {_ANY} and not (said == "integer" and "number" in types)):
        raise Malformed
    return types if said == _ANY else frozenset({said})


@dataclass(frozen=True, kw_only=True)
class HorizonCalls(CallSyntax):
    """Calls in the syntax that `tool_call_format` in `chat_template_kwargs` names, the first where it is absent."""

    syntaxes: tuple[tuple[str, CallSyntax], ...]

    def of(self, request: Request) -> CallSyntax:
        """The syntax that the request names."""
        known = dict(self.syntaxes)
        chosen = request.chat_template_kwargs.get("tool_call_format", self.syntaxes[0][0])
        if chosen not in known:
            raise unknown_choice("chat_template_kwargs.tool_call_format", chosen, known)
        return known[str(chosen)]

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one call, its opener taken."""
        return self.of(calls.request).read(calls, opener)

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """All calls in one group."""
        return f"{_GROUP[0]}{self.of(request).write(calls, request)}{_GROUP[1]}"

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """All calls in one group."""
        inner = self.of(request).block(tools, request)
        return replace(
            inner,
            opener=_GROUP[0],
            first=sequence(inner.opener, inner.first),
            closer=sequence(inner.closer, _GROUP[1]),
            openers=_GROUP[:1],
        )


_XML = TaggedCalls(
    openers=_CALL[:1],
    closers=_CALL[1:],
    parameter=Parameter(
        open="<ifm|arg_key>",
        key_close="</ifm|arg_key>",
        value_open="<ifm|arg_value>",
        value_close="</ifm|arg_value>",
    ),
    ends_unclosed_call=(_CALL[0], *_GROUP),
    repeated_key="refused",
)
_TYPED = replace(
    _XML,
    parameter=TypedParameter(
        open=_XML.parameter.open,
        key_close=_XML.parameter.key_close,
        value_open=_XML.parameter.value_open,
        value_close=_XML.parameter.value_close,
    ),
)
_JSON = JsonObjectCalls(openers=_CALL[:1], closers=_CALL[1:])

K2_HORIZON = Format(
    name="k2_horizon",
    tool_names=("k2_horizon",),
    reasoning_names=("k2_horizon",),
    reasoning=ReasoningSpan(
        pairs=tuple((f"<ifm|{word}>", f"</ifm|{word}>") for word in ("think", "think_fast", "think_faster")),
        levels=("reasoning_effort", ("high", "medium", "low")),
        ends_at_call=True,
    ),
    calls=HorizonCalls(
        groups=(_GROUP,),
        openers=_CALL[:1],
        closers=_CALL[1:],
        syntaxes=(("xml", _XML), ("xml_typed", _TYPED), ("json", _JSON)),
    ),
)

FORMATS = (K2_HORIZON,)
