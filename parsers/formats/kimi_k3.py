"""Kimi K3: XTML, whose tags are three pieces, `<|open|>NAME attributes<|sep|>`, round channels and calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from streamsieve.parsers.arguments.json_text import copy_json
from streamsieve.parsers.arguments.schema_types import JSON, Typing, convert_or_json
from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reader, Reading
from streamsieve.parsers.tag_parts import Part, pattern, sequence

_OPEN, _CLOSE, _SEP = "<|open|>", "<|close|>", "<|sep|>"
_SEPARATOR = Markers((_SEP,))
_ATTRIBUTE = re.compile(r"[\w-]*")
_VALUE = re.compile(r'[^"]*')
_STRING = frozenset({"string"})
_TYPES = {bool: "boolean", int: "number", float: "number", type(None): "null", dict: "object", list: "array"}


def _tags(piece: str, name: str, end: str = _SEP) -> tuple[str, ...]:
    """A tag, and as it looks where the detokenizer puts spaces between special tokens and text."""
    return tuple(f"{piece}{before}{name}{after}{end}" for before in ("", " ") for after in ("", " ")[: 1 + bool(end)])


def _pairs(name: str) -> tuple[tuple[str, str], ...]:
    return tuple(zip(_tags(_OPEN, name), _tags(_CLOSE, name), strict=True))


def _attributes(reader: Reader) -> Reading[dict[str, str]]:
    """Take the attributes of a tag, in any order, and the end of the tag."""
    found: dict[str, str] = {}
    while True:
        space = yield from reader.space()
        if (yield from reader.takes(_SEPARATOR)):
            return found
        name = yield from reader.run(_ATTRIBUTE)
        if not name or not space:
            raise EndOfText if reader.is_over or reader.ends_within(_SEPARATOR) else Malformed
        yield from reader.take('="')
        value = yield from reader.run(_VALUE)
        yield from reader.take('"')
        found[name] = value.replace("&quot;", '"').replace("&amp;", "&")


def _attribute(name: str, value: str) -> str:
    escaped = value.replace("&", "&amp;").replace('"', "&quot;")
    return f' {name}="{escaped}"'


class XtmlArgument(Parameter):
    """An argument, which says its own type."""

    def types_of(self, value: object, schema: JsonSchema | None, key: str, typing: Typing) -> frozenset[str]:
        """Text, or JSON."""
        return _STRING if isinstance(value, str) else JSON

    def write_head(self, key: str, value: object, space: str) -> str:
        """The tag with its attributes."""
        attributes = _attribute("key", key) + _attribute("type", _TYPES.get(type(value), "string"))
        return f"{self.open}{attributes}{self.key_close}"

    def read_head(
        self, reader: Reader, opener: str, schema: JsonSchema | None, typing: Typing
    ) -> Reading[tuple[str, frozenset[str]]]:
        """Take the attributes: the key, and whether the value is text or JSON."""
        attributes = yield from _attributes(reader)
        if "key" not in attributes:
            raise Malformed
        return attributes["key"], _STRING if attributes.get("type", "string") == "string" else JSON


@dataclass(frozen=True, kw_only=True)
class XtmlCalls(TaggedCalls):
    """`<|open|>call tool="name"<|sep|>`, then arguments or the JSON of all of them."""

    def read_name(self, reader: Reader, opener: str) -> Reading[str]:
        """Take the attributes of the call's tag."""
        attributes = yield from _attributes(reader)
        if not attributes.get("tool"):
            raise Malformed
        return attributes["tool"]

    def read_arguments(self, calls: CallWriter, name: str) -> Reading[None]:
        """Read what stands behind the call's tag, through its closer."""
        reader = calls.reader
        yield from reader.space()
        if not (yield from reader.takes(_JSON_OPENERS)):
            yield from super().read_arguments(calls, name)
            return
        yield from _attributes(reader)
        if (yield from reader.peek_after_space()) != "{":
            raise Malformed
        calls.start(name)
        yield from copy_json(reader, calls.arguments)
        yield from calls.close(self.closers, _JSON_CLOSERS)

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """All calls in one channel, counted from 1."""
        written = [
            self.write_behind(f"{self._named(call.name)}{_attribute('index', str(number))}{_SEP}", call)
            for number, call in enumerate(calls, 1)
        ]
        return f"{self.groups[0][0]}{''.join(written)}{self.groups[0][1]}"

    def _named(self, name: str) -> str:
        return f"{self.openers[0]}{_attribute('tool', name)}"

    def opening_tag(self, name: str) -> Part:
        """The call's tag, whatever its number."""
        return sequence(f'{self._named(name)} index="', pattern("[1-9][0-9]{0,3}"), f'"{_SEP}')


_JSON_OPENERS, _JSON_CLOSERS = Markers(_tags(_OPEN, "json", "")), Markers(_tags(_CLOSE, "json"))
_ARGUMENTS, _ARGUMENT_CLOSERS = _tags(_OPEN, "argument", ""), _tags(_CLOSE, "argument")
_CALLS = _tags(_OPEN, "call", "")

KIMI_K3 = Format(
    name="kimi_k3",
    tool_names=("kimi_k3",),
    reasoning_names=("kimi_k3",),
    reasoning=ReasoningSpan(
        pairs=tuple((opener, f"{_CLOSE}think{_SEP}") for opener in _tags(_OPEN, "think")),
        enders=(*_tags(_CLOSE, "think")[1:], *_tags(_OPEN, "response")),
        answer=_pairs("response"),
        ends_at_call=True,
        switch=Switch(keys=("thinking", "enable_thinking"), decides="first"),
        turn_heads=(f"{_OPEN}message",),
    ),
    calls=XtmlCalls(
        groups=_pairs("tools"),
        openers=_CALLS,
        closers=_tags(_CLOSE, "call"),
        parameter=XtmlArgument(
            open=_ARGUMENTS[0],
            variants=_ARGUMENTS[1:],
            key_close=_SEP,
            value_close=_ARGUMENT_CLOSERS[0],
            close_variants=_ARGUMENT_CLOSERS[1:],
        ),
        ends_unclosed_call=(*_CALLS, *_tags(_CLOSE, "tools")),
        space="",
        group_holds="all calls",
        real_at="head",
        typing=Typing(convert=convert_or_json),
    ),
    ends=(*_tags(_CLOSE, "message"), "<|end_of_msg|>"),
)

FORMATS = (KIMI_K3,)
