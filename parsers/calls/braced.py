"""Calls with their arguments as bare keys and values in braces, strings between delimiters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from streamsieve.parsers.arguments.delimited_text import KEY, DelimitedText
from streamsieve.parsers.arguments.delimited_values import DelimitedValues
from streamsieve.parsers.arguments.json_text import JSON_SPECIAL
from streamsieve.parsers.arguments.object_writer import ObjectWriter, StringValue
from streamsieve.parsers.arguments.schema_choices import argument_objects
from streamsieve.parsers.arguments.schema_place import SchemaPlace, parameters_place
from streamsieve.parsers.arguments.schema_types import is_plain_string
from streamsieve.parsers.call_writer import NAME, CallWriter
from streamsieve.parsers.calls.call_block import CallBlock, any_of
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Plain, Reader, Reading, Search
from streamsieve.parsers.tag_parts import JsonObject, either, sequence

_PAIRS = {"{": "}", "[": "]", "(": ")"}


@dataclass(frozen=True, kw_only=True)
class BracedCalls(CallSyntax):
    """`OPENER prefix name { key:value, key:value } CLOSER`; the first of `prefixes` is the one that is written.

    `brackets`: what may open the arguments; with `closed_name`, a call without any may be closed at once.
    """

    values: DelimitedText
    prefixes: tuple[str, ...]
    brackets: tuple[str, ...] = ("{",)
    closed_name: bool = False

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one call, its opener taken."""
        reader = calls.reader
        yield from reader.space()
        if (yield from reader.takes(Markers.of(*self.prefixes))) is None:
            raise Malformed
        name = yield from reader.run(NAME)
        yield from reader.space()
        opening = "" if self.closed_name and reader.turn_ended else (yield from reader.peek())
        if opening in self.brackets:
            reader.position += 1
            calls.start(name)
            yield from self._members(calls, _PAIRS[opening], parameters_place(calls.request.tools.get(name)))
        elif self.closed_name and (not opening or (yield from reader.sees(Markers.of(*self.closers)))):
            calls.whole(name, "{}")
        else:
            raise Malformed
        yield from calls.close(self.closers)

    def _members(self, calls: CallWriter, closer: str, place: SchemaPlace) -> Reading[None]:
        """Read the arguments through their closing bracket."""
        reader, arguments = calls.reader, ObjectWriter(calls.arguments)
        signs = _signs(self.values.delimiter, closer, calls.boundaries)
        following = yield from reader.peek_after_space()
        while following != closer:
            key = yield from self._key(reader, signs)
            yield from reader.space()
            yield from reader.take(":")
            yield from reader.space()
            yield from self._value(reader, arguments, key, place.member(key), signs)
            following = yield from reader.peek_after_space()
            if following == ",":
                reader.position += 1
                following = yield from reader.peek_after_space()
                if following == closer:
                    raise Malformed
            elif following != closer:
                raise Malformed
        reader.position += 1
        arguments.close()

    def _key(self, reader: Reader, signs: _Signs) -> Reading[str]:
        if not (yield from reader.takes(signs.delimiter)):
            key = yield from reader.run(KEY)
            if not key:
                raise EndOfText if reader.ends_within(signs.delimiter) else Malformed
            return key
        pieces: list[str] = []
        if (yield from reader.find(signs.delimiter, pieces.append)) is None:
            raise EndOfText
        return "".join(pieces)

    def _value(
        self, reader: Reader, arguments: ObjectWriter, key: str, place: SchemaPlace, signs: _Signs
    ) -> Reading[None]:
        """Read one value: a string parameter's as it comes, any other when it is complete."""
        delimited = yield from reader.takes(signs.delimiter)
        if not delimited and (yield from reader.peek()) in ("{", "["):
            raw: list[str] = []
            yield from _container(reader, raw, signs)
            arguments.value(key, self.values.container("".join(raw), place))
        elif is_plain_string(frozenset(place.types)) and (place.types or self.values.undeclared == "string"):
            value = arguments.open_string(key, "none" if delimited else "space")
            try:
                yield from _scalar(reader, value, signs, delimited=bool(delimited))
            except EndOfText:
                value.cut()
                raise
            value.close()
        else:
            pieces = _Pieces()
            yield from _scalar(reader, pieces, signs, delimited=bool(delimited))
            text = "".join(pieces.taken)
            arguments.value(key, self.values.scalar(text if delimited else text.strip(), place))

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """One block a call."""
        return "".join(self._write(call, request.tools.get(call.name)) for call in calls)

    def _write(self, call: ToolCall, parameters: JsonSchema | None) -> str:
        place = parameters_place(parameters)
        members = [
            f"{self.values.write_key(key)}:{self._write_value(value, place.member(key))}"
            for key, value in json.loads(call.arguments).items()
        ]
        return f"{self.openers[0]}{self.prefixes[0]}{call.name}{{{','.join(members)}}}{self.closers[0]}"

    def _write_value(self, value: object, place: SchemaPlace) -> str:
        """A value; one whose bare words the schema would not make again what they were goes as JSON in a string."""
        written = self.values.write(value)
        if isinstance(value, dict | list) and json.loads(self.values.container(written, place)) != value:
            return self.values.write(json.dumps(value, ensure_ascii=False))
        return written

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """One block a call."""
        call = sequence(any_of(tools, self._tag), self.closers[0])
        return CallBlock(opener=self.openers[0], call=call, between=self.openers[0], openers=self.openers)

    def _tag(self, name: str, schema: JsonSchema) -> JsonObject:
        values = DelimitedValues(text=self.values)
        members = (values.members(name, members, schema) for members in argument_objects(schema))
        return sequence(f"{self.prefixes[0]}{name}{{", either(*members), "}")


class _Pieces:
    """A value that waits for its end."""

    json = None

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.text = self.taken.append


def _scalar(reader: Reader, value: StringValue | _Pieces, signs: _Signs, *, delimited: bool) -> Reading[None]:
    """Read a string through its delimiter, or a bare word up to what ends it."""
    if delimited:
        plain = Plain(signs.plain, value.json) if value.json else None
        if (yield from reader.find(signs.delimiter, value.text, plain)) is None:
            raise EndOfText
        return
    end = yield from reader.find(signs.after_bare, value.text)
    if end is None:
        raise EndOfText
    reader.position -= len(end)
    if end in signs.boundaries:
        raise Malformed


def _container(reader: Reader, raw: list[str], signs: _Signs) -> Reading[None]:
    """Take a value in brackets, its strings passed over, and give its text to `raw`."""
    closers: list[str] = []
    while True:
        sign = yield from reader.find(signs.in_container, raw.append)
        if sign is None:
            raise EndOfText
        if sign in signs.boundaries:
            reader.position -= len(sign)
            raise Malformed
        raw.append(sign)
        if sign in _PAIRS:
            closers.append(_PAIRS[sign])
        elif sign not in ("}", "]"):
            if (yield from reader.find(signs.delimiter, raw.append)) is None:
                raise EndOfText
            raw.append(sign)
        elif sign != closers.pop():
            raise Malformed
        if not closers:
            return


@dataclass(frozen=True, eq=False)
class _Signs:
    """What is looked for where, in one syntax."""

    delimiter: Markers
    plain: Search
    after_bare: Markers
    in_container: Markers
    boundaries: frozenset[str]


@lru_cache(maxsize=256)
def _signs(delimiter: str, closer: str, boundaries: Markers) -> _Signs:
    return _Signs(
        delimiter=Markers((delimiter,)),
        plain=re.compile(f"[{re.escape(delimiter[0])}{JSON_SPECIAL}]").search,
        after_bare=Markers((",", "}", "]", closer, *boundaries.literals)),
        in_container=Markers((delimiter, "{", "[", "}", "]", *boundaries.literals)),
        boundaries=boundaries.literals,
    )
