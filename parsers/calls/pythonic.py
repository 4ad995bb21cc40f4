"""Calls as Python writes them: `name(key=value, …)`, in a list or between tags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.arguments.object_writer import ObjectWriter
from streamsieve.parsers.arguments.python_literals import StringEnd, read_argument
from streamsieve.parsers.arguments.python_values import Keywords
from streamsieve.parsers.arguments.schema_choices import argument_objects
from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.calls.call_block import CallBlock, any_of
from streamsieve.parsers.calls.call_list import read_list
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Malformed, Markers, Reading
from streamsieve.parsers.tag_parts import JsonObject, either, sequence

_DOTTED_RUN = re.compile(r"[\w.]*")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WORD_RUN = re.compile(r"\w*")


@dataclass(frozen=True, kw_only=True)
class PythonicCalls(CallSyntax):
    """A list `[call, call]`, or calls between `openers` and `closers` with `brackets="none"`.

    `wrapper`: markers that may stand round the whole list at the start of the answer.
    `string_end`: where a string literal ends.
    """

    brackets: Literal["list", "none"] = "list"
    wrapper: tuple[str, str] | None = None
    string_end: StringEnd = "quote"

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read the calls that start here."""
        reader = calls.reader
        wrapped = self.wrapper and (yield from reader.takes(Markers.of(self.wrapper[0])))
        yield from reader.space()
        if self.brackets == "none":
            yield from read_list(calls, self._call, close=self.closers[0], commas="free")
            return
        yield from reader.take("[")
        yield from read_list(calls, self._call, commas="trailing")
        if not calls.survived and not opener:
            raise Malformed  # brackets alone mark nothing
        yield from calls.optional_closer((self.wrapper[1],) if wrapped and self.wrapper else self.closers)

    def _call(self, calls: CallWriter) -> Reading[None]:
        """Read one call. It is real at its closing bracket or its first `key=`."""
        reader = calls.reader
        name = yield from reader.run(_DOTTED_RUN)
        yield from reader.space()
        yield from reader.take("(")
        if not _DOTTED.fullmatch(name):
            raise Malformed
        following = yield from reader.peek_after_space()
        arguments: ObjectWriter | None = None
        while following != ")":
            key = yield from reader.run(_WORD_RUN)
            yield from reader.space()
            yield from reader.take("=")
            if not key or key[0].isdigit() or (yield from reader.peek()) == "=":
                raise Malformed
            if arguments is None:
                calls.start(name)
                arguments = ObjectWriter(calls.arguments)
            yield from read_argument(reader, arguments, key, self.string_end)
            following = yield from reader.peek_after_space()
            if following == ",":
                reader.position += 1
                following = yield from reader.peek_after_space()
            elif following != ")":
                raise Malformed
        reader.position += 1
        if calls.state is CallState.TENTATIVE:
            calls.start(name)
        (arguments or ObjectWriter(calls.arguments)).close()

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """One list, or one call a line between the tags."""
        if self.brackets == "none":
            lines = "\n".join(map(_write, calls))
            return f"{self.openers[0]}\n{lines}\n{self.closers[0]}"
        opener, closer = self.wrapper or ("".join(self.openers), "".join(self.closers))
        return f"{opener}[{', '.join(map(_write, calls))}]{closer}"

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """One list at the start of the answer or between the markers, or one call a line between the tags."""
        call = any_of(tools, _tag)
        if self.brackets == "none":
            closer = f"\n{self.closers[0]}"
            return CallBlock(
                opener=self.openers[0], first="\n", call=call, between="\n", closer=closer, openers=self.openers
            )
        wrappers = (("", ""), *([self.wrapper] if self.wrapper else []))
        return CallBlock(
            opener="".join(self.openers),
            first="[",
            call=call,
            between=", ",
            closer="".join(("]", *self.closers)),
            at_start=wrappers if self.answer_starts else (),
            starts=self.answer_starts,
            openers=self.openers,
        )


def _tag(name: str, schema: JsonSchema) -> JsonObject:
    """The grammar of a call of `name`, whose arguments follow `schema`."""
    keywords = (Keywords().members(name, members, schema) for members in argument_objects(schema))
    return sequence(f"{name}(", either(*keywords), ")")


def _write(call: ToolCall) -> str:
    arguments = json.loads(call.arguments)
    return f"{call.name}({', '.join(f'{key}={_literal(value)}' for key, value in arguments.items())})"


def _literal(value: object) -> str:
    """`value`, made of what JSON has, as a Python literal."""
    return repr(value)
