"""Calls whose arguments are nested elements, `<key>text or elements</key>`, a prefix before each tag."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from streamsieve.parsers.arguments.element_tags import ElementTags
from streamsieve.parsers.arguments.elements import Element
from streamsieve.parsers.arguments.schema_choices import argument_objects
from streamsieve.parsers.arguments.schema_types import write_json
from streamsieve.parsers.call_writer import NAME, CallWriter
from streamsieve.parsers.calls.call_block import CallBlock, any_of
from streamsieve.parsers.calls.labels import Label
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reader, Reading
from streamsieve.parsers.tag_parts import JsonObject, either, sequence, text

_KEY = re.compile(r"[^<>\r\n]*")
_DEPTH = 64
"""How deep elements may nest; a call with deeper ones is broken."""


@dataclass(frozen=True, kw_only=True)
class ElementCalls(CallSyntax):
    """`OPENER name> { element } CLOSER`, an element being `PREFIX<key>` text or elements `PREFIX</key>`.

    A call's arguments go out at its end: a key that comes again changes what came before. At a cut
    those elements count that are complete. An argument ends at its closing tag only where another tag
    or the end follows that; inside it such text is the value's (contract, "How arguments are read").
    """

    prefix: str
    label: Label
    arguments_out: Literal["as they come", "at the end"] = "at the end"

    @property
    def _tag(self) -> str:
        return f"{self.prefix}<"

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one call, its opener taken."""
        reader = calls.reader
        name = yield from self.label.read(reader, opener, NAME, NAME)
        yield from reader.take(">")
        tags = _tags(self._tag, calls.ends, calls.boundaries)
        key = yield from self._next(calls, tags.between)
        calls.start(name)
        root = Element("")
        schema = calls.request.tools.get(name) or {}
        try:
            while key is not None:
                closed = yield from self._element(calls, tags, root, key)
                key = (yield from self._next(calls, tags.between)) if not closed else None
        except EndOfText:
            if reader.cut and root.children:
                calls.arguments(f"{{{root.members(schema, schema)}")
            raise
        calls.arguments(f"{{{root.members(schema, schema)}}}")
        calls.end()

    def _next(self, calls: CallWriter, tags: Markers) -> Reading[str | None]:
        """Take the opening tag of the next argument, and return its key; None where the call ends."""
        reader = calls.reader
        yield from reader.space()
        seen = yield from reader.sees(tags)
        if seen == self._tag:
            reader.position += len(seen)
            return (yield from self._key(reader))
        if seen in self.closers:
            reader.position += len(seen or "")
        elif seen is None and not reader.may_end and not reader.ends_within(tags):
            raise Malformed
        elif seen is None and reader.cut:
            raise EndOfText
        else:
            calls.unclosed()
        return None

    def _key(self, reader: Reader) -> Reading[str]:
        """Take a key and the end of its tag."""
        key = yield from reader.run(_KEY)
        yield from reader.take(">")
        if not key or key[0] in " /":
            raise Malformed
        return key

    def _element(self, calls: CallWriter, tags: _Tags, root: Element, key: str) -> Reading[bool]:
        """Read an argument, its opening tag taken; whether the call's closer came in place of its own."""
        reader = calls.reader
        opened = [root, Element(key)]
        while len(opened) > 1:
            marker = yield from reader.find(tags.inside, opened[-1].text.append)
            if marker == self._tag and (yield from reader.peek()) != "/":
                opened.append(Element((yield from self._key(reader))))
                if len(opened) > _DEPTH:
                    raise Malformed
            elif marker == self._tag:
                yield from self._close(reader, tags.between, opened)
            elif marker in self.closers:
                space = yield from reader.space()
                if (yield from reader.sees(calls.boundaries)) is not None or reader.may_end:
                    _close_all(opened)
                    calls.unclosed()
                    return True
                opened[-1].text.append(f"{marker}{space}")
            elif marker is None:
                raise EndOfText
            else:
                reader.position -= len(marker)
                raise Malformed
        return False

    def _close(self, reader: Reader, tags: Markers, opened: list[Element]) -> Reading[None]:
        """Take the closing tag of the innermost element, whose beginning is taken."""
        reader.position += 1
        key = yield from reader.run(_KEY)
        yield from reader.take(">")
        if key != opened[-1].key:
            raise Malformed
        if len(opened) == 2:
            space = yield from reader.space()
            if (yield from reader.sees(tags)) is None and not reader.may_end:
                opened[-1].text.append(f"{self._tag}/{key}>{space}")
                return
        child = opened.pop()
        opened[-1].children.append(child)

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """All calls in one group, a line for each tag."""
        opener, closer = self.groups[0]
        return "\n".join([opener, *map(self._write, calls), closer])

    def _write(self, call: ToolCall) -> str:
        lines = [f"{self.label.write(self.openers[0], call.name)}>"]
        for key, value in json.loads(call.arguments).items():
            text = value if isinstance(value, str) else write_json(value)
            lines.append(f"{self._tag}{key}>{text}{self._tag}/{key}>")
        return "\n".join([*lines, self.closers[0]])

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """All calls in one group."""
        opener, closer = self.groups[0]
        call = sequence("\n", any_of(tools, self._block_call))
        return CallBlock(opener=opener, call=call, closer=f"\n{closer}", openers=(opener,))

    def _block_call(self, name: str, schema: JsonSchema) -> JsonObject:
        tags = ElementTags(self._tag, schema)
        objects = [
            tags.members(name, members, "\n") if members.declared or members.others is None else text(self.closers)
            for members in argument_objects(schema)
        ]
        return sequence(f"{self.label.write(self.openers[0], name)}>", either(*objects), f"\n{self.closers[0]}")


@dataclass(frozen=True, eq=False)
class _Tags:
    """What is looked for between the arguments, and what inside one."""

    between: Markers
    inside: Markers


@lru_cache(maxsize=256)
def _tags(tag: str, ends: tuple[str, ...], boundaries: Markers) -> _Tags:
    return _Tags(
        between=Markers((tag, *boundaries.literals)),
        inside=Markers((tag, *(boundaries.literals - set(ends)))),
    )


def _close_all(opened: list[Element]) -> None:
    """The closers of all open elements are missing."""
    while len(opened) > 1:
        child = opened.pop()
        opened[-1].children.append(child)
