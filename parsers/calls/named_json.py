"""Calls with the name in a header and the arguments as a JSON object behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from streamsieve.parsers.arguments.json_text import copy_json
from streamsieve.parsers.call_writer import NAME, CallWriter
from streamsieve.parsers.calls.call_block import CallBlock, any_of
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Malformed, Markers, Reading
from streamsieve.parsers.tag_parts import JsonObject, Part, arguments, sequence


def plain_header(header: str) -> tuple[str, str | None]:
    """A header that is the name."""
    return header, None


@dataclass(frozen=True, kw_only=True)
class NamedJsonCalls(CallSyntax):
    """`OPENER prefix header name_close arguments_open object arguments_close CLOSER`, white space between them framing.

    `other_opens`: what may stand in the place of `arguments_open`.
    `header_parts` makes the name and the call's native id (or None) of the header. `space` is what
    the format writes before and behind the arguments.
    """

    arguments_open: str
    other_opens: tuple[str, ...] = ()
    prefix: str = ""
    name_close: str = ""
    arguments_close: str = ""
    space: str = ""
    header_parts: Callable[[str], tuple[str, str | None]] = plain_header

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one call, its opener taken."""
        reader = calls.reader
        yield from reader.space()
        yield from reader.take(self.prefix)
        yield from reader.space()
        name, native_id = self.header_parts((yield from reader.run(NAME)))
        yield from reader.space()
        yield from reader.take(self.name_close)
        yield from reader.space()
        if (yield from reader.takes(Markers.of(self.arguments_open, *self.other_opens))) is None:
            raise Malformed
        if (yield from reader.peek_after_space()) == "{":
            calls.start(name, native_id)
            yield from copy_json(reader, calls.arguments)
        elif (yield from reader.sees(Markers.of(self.arguments_close, *self.closers))) is not None:
            calls.whole(name, "{}", native_id)
        else:
            raise Malformed
        yield from calls.close(self.closers, Markers.of(self.arguments_close))

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """All calls in one group."""
        before, after = self.groups[0]
        return f"{before}{''.join(map(self._write, calls))}{after}"

    def _write(self, call: ToolCall) -> str:
        header = f"{self.openers[0]}{self.prefix}{self.write_header(call)}{self.name_close}"
        arguments = self.space.join(("", self.arguments_open, call.arguments, self.arguments_close))
        return f"{header}{arguments}{self.closers[0]}"

    def write_header(self, call: ToolCall) -> str:
        """The header that names `call`."""
        return call.name

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """All calls in one group."""
        before, after = self.groups[0]
        return CallBlock(opener=before, call=any_of(tools, self._tag), closer=after, openers=(before,))

    def _tag(self, name: str, schema: JsonSchema) -> JsonObject:
        header = sequence(self.openers[0], self.prefix, self.header_tag(name), self.name_close)
        opened = self.space.join(("", self.arguments_open, ""))
        return sequence(header, opened, arguments(schema), self.space, self.arguments_close, self.closers[0])

    def header_tag(self, name: str) -> Part:
        """The grammar of a header that names the function `name`."""
        return name
