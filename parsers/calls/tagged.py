"""Calls with their parameters between tags, the values raw text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from streamsieve.parsers.arguments.json_text import JSON_SPECIAL
from streamsieve.parsers.arguments.object_writer import HeldValue, ObjectWriter, RawValue, Trim
from streamsieve.parsers.arguments.schema_types import is_plain_string, parameter_types, write_json
from streamsieve.parsers.call_writer import NAME, CallState, CallWriter
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Plain, Reader, Reading, Search

_KEY_BEFORE_BRACKET = re.compile(r"[^>\r\n]*")
_KEY_BEFORE_TAG = re.compile(r"[^<]*")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """The tags of one parameter: `open KEY key_close [space value_open] VALUE value_close`."""

    open: str
    key_close: str
    value_close: str
    value_open: str = ""

    def read_key(self, reader: Reader) -> Reading[str]:
        """Take the key behind `open`, and what stands before the value."""
        key = yield from reader.run(_KEY_BEFORE_BRACKET if self.key_close == ">" else _KEY_BEFORE_TAG)
        yield from reader.take(self.key_close)
        if self.value_open:
            yield from reader.space()
            yield from reader.take(self.value_open)
        return key.strip()

    def write(self, key: str, value: str, space: str) -> str:
        """The parameter as the format writes it, `space` between its parts."""
        between = space if self.value_open else ""
        return f"{self.open}{key}{self.key_close}{between}{self.value_open}{value}{self.value_close}"


@dataclass(frozen=True, kw_only=True)
class TaggedCalls(CallSyntax):
    """`OPENER name [name_close] { parameter } CLOSER`; the closer is the first of `closers`.

    A value ends at its closing tag only where another tag of the call, or the end, follows that
    (contract, "How arguments are read"); `ends_unclosed_value` are tags that end one without.
    `ends_unclosed_call`: what may come instead of the call's closer.
    `trim`: what white space round a value is markup. `line_break`: one that belongs to the tags on
    either side of a value where it stands. `space`: what the format writes between parts.
    """

    parameter: Parameter
    name_close: str = ""
    trim: Trim = "none"
    ends_unclosed_value: tuple[str, ...] = ()
    ends_unclosed_call: tuple[str, ...] = ()
    line_break: str = ""
    space: str = "\n"

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one call, its opener taken."""
        reader = calls.reader
        yield from reader.space()
        name = yield from reader.run(NAME)
        yield from reader.take(self.name_close)
        tags = _tags(self, calls.ends, calls.boundaries)
        tag = yield from self._next(calls, tags)
        calls.start(name)
        arguments = ObjectWriter(calls.arguments)
        while tag == self.parameter.open:
            reader.position += len(tag)
            space = yield from self._parameter(calls, arguments, tags, calls.request.tools.get(name))
            if space is not None:
                arguments.close()
                calls.end()
                calls.text(space)
                return
            tag = yield from self._next(calls, tags)
        if tag in self.closers:
            reader.position += len(tag)
        else:
            calls.unclosed()
        arguments.close()
        calls.end()

    def _next(self, calls: CallWriter, tags: _Tags) -> Reading[str]:
        """The tag that comes, unread; empty where the reply may end here."""
        reader, real = calls.reader, calls.state is CallState.REAL
        yield from reader.space()
        tag = yield from reader.sees(tags.between)
        if tag is not None and (real or tag not in calls.ends):
            return tag
        if not reader.is_over and not reader.ends_within(tags.between):
            raise Malformed
        if reader.cut or not real:
            raise EndOfText
        return ""

    def _parameter(
        self, calls: CallWriter, arguments: ObjectWriter, tags: _Tags, schema: JsonSchema | None
    ) -> Reading[str | None]:
        """Read one parameter, its opener taken. Where the call's closer ends it, that is taken too, and the
        white space behind it returned."""
        reader = calls.reader
        key = yield from self.parameter.read_key(reader)
        types = parameter_types(schema, key)
        value: RawValue = HeldValue(arguments, key, types, self.trim)
        if is_plain_string(types):
            value = arguments.open_string(key, self.trim)
        plain = Plain(tags.plain, value.json) if value.json else None
        yield from reader.takes(Markers((self.line_break,)))
        try:
            while found := (yield from reader.find(tags.in_value, value.text, plain)):
                tag = found.removeprefix(self.line_break)
                if tag in self.ends_unclosed_value:
                    reader.position -= len(tag)
                    value.close()
                    return None
                space = yield from reader.space()
                following = tags.after_call if tag in self.closers else tags.between
                if (yield from reader.sees(following)) is not None or reader.is_over:
                    value.close()
                    return space if tag in self.closers else None
                value.text(found + space)
            raise EndOfText
        except EndOfText:
            value.cut()
            raise

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """One block a call, in its group where the format has groups."""
        opener, closer = self.groups[0] if self.groups else ("", "")
        before, after = (opener + self.space, self.space + closer) if opener else ("", "")
        return self.space.join(f"{before}{self._write(call, request)}{after}" for call in calls)

    def _write(self, call: ToolCall, request: Request) -> str:
        parts = [f"{self.openers[0]}{call.name}{self.name_close}"]
        for key, value in json.loads(call.arguments).items():
            text = value if isinstance(value, str) else write_json(value)
            parts.append(self.parameter.write(key, f"{self.line_break}{text}{self.line_break}", self.space))
        return self.space.join([*parts, self.closers[0]])


@dataclass(frozen=True, eq=False)
class _Tags:
    """What is looked for where, in one syntax with one set of end-of-turn tokens."""

    between: Markers
    in_value: Markers
    plain: Search
    after_call: Markers


@lru_cache(maxsize=256)
def _tags(syntax: TaggedCalls, ends: tuple[str, ...], boundaries: Markers) -> _Tags:
    between = (syntax.parameter.open, *syntax.closers, *syntax.ends_unclosed_call, *ends)
    ends_value = (syntax.parameter.value_close, *syntax.closers, *syntax.ends_unclosed_value)
    in_value = Markers((*ends_value, *(syntax.line_break + tag for tag in ends_value)))
    first = "".join({re.escape(marker[0]) for marker in in_value.literals})
    return _Tags(
        between=Markers(between),
        in_value=in_value,
        plain=re.compile(f"[{first}{JSON_SPECIAL}]").search,
        after_call=Markers(boundaries.literals - set(syntax.closers)),
    )
