"""Calls as JSON objects that hold a name and arguments: alone behind a marker, or in a list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from streamsieve.parsers.arguments.json_text import Controls, copy_json, is_object, quote, read_string
from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.calls.call_block import CallBlock, any_of
from streamsieve.parsers.calls.call_list import read_list
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Malformed, Reading
from streamsieve.parsers.tag_parts import JsonObject, arguments, pattern, sequence


class Element(Protocol):
    """One call as a JSON object."""

    def read(self, calls: CallWriter) -> Reading[None]:
        """Take the object, from its brace through its brace. Its end is not yet the call's."""

    def write(self, call: ToolCall) -> str:
        """The call as the format writes it."""

    def tag(self, name: str, schema: JsonSchema) -> JsonObject:
        """The grammar of a call of `name`, whose arguments follow `schema`."""


@dataclass(slots=True)
class _Found:
    """What of one object has been read. `held` are arguments that are not out yet, `rank` tells of which key."""

    name: str | None = None
    native_id: str | None = None
    held: list[str] = field(default_factory=list)
    rank: int | None = None

    def start(self, calls: CallWriter) -> None:
        """The call is real, if it has not been."""
        if self.name is not None and calls.state is CallState.TENTATIVE:
            calls.start(self.name, self.native_id)

    def release(self, calls: CallWriter) -> None:
        """What was held goes out."""
        for json_text in self.held:
            calls.arguments(json_text)
        self.held = []


@dataclass(frozen=True, kw_only=True)
class CallObject:
    """One JSON object as a call: its keys, in any order.

    `without_arguments`: what an object without the arguments key is, a call with `{}` or none.
    `two_arguments`: what one with two of `argument_keys` is: broken, or a call with those under the
    key that comes first in `argument_keys`, so that others wait for the object's end.
    `others`: the further keys it may have, each with the one value it may have or None; None where any
    key may stand there. They are passed over.
    `controls`: what a raw control character in a string is: a failure, or as good as its escape.
    """

    name_key: str = "name"
    argument_keys: tuple[str, ...] = ("arguments",)
    id_key: str | None = None
    without_arguments: Literal["empty", "refused"] = "empty"
    null_arguments: Literal["empty", "refused"] = "refused"
    two_arguments: Literal["refused", "first key"] = "refused"
    others: tuple[tuple[str, str | None], ...] | None = None
    controls: Controls = "refused"

    def read(self, calls: CallWriter) -> Reading[None]:
        """Take the object, from its brace through its brace. Its end is not yet the call's."""
        reader = calls.reader
        found = _Found()
        yield from reader.take("{")
        following = yield from reader.peek_after_space()
        try:
            while following != "}":
                yield from self._member(calls, found)
                following = yield from reader.peek_after_space()
                if following == ",":
                    reader.position += 1
                    if (yield from reader.peek_after_space()) != '"':
                        raise Malformed
                elif following != "}":
                    raise Malformed
        finally:  # where it breaks too: what was held is as good as what would have gone out
            if calls.state is CallState.REAL:
                found.release(calls)
        reader.position += 1
        if calls.state is CallState.TENTATIVE:
            if found.name is None or self.without_arguments == "refused":
                raise Malformed
            calls.whole(found.name, "{}", found.native_id)

    def _member(self, calls: CallWriter, found: _Found) -> Reading[None]:
        reader = calls.reader
        key = yield from read_string(reader, self.controls)
        yield from reader.space()
        yield from reader.take(":")
        following = yield from reader.peek_after_space()
        if key == self.name_key:
            if found.name is not None:
                raise Malformed
            found.name = yield from read_string(reader, self.controls)
            self._known(calls, found)
        elif key in self.argument_keys:
            yield from self._arguments(calls, found, self.argument_keys.index(key), following)
        else:
            found.native_id = (yield from self._other(calls, key, following)) or found.native_id

    def _arguments(self, calls: CallWriter, found: _Found, rank: int, following: str) -> Reading[None]:
        """Take arguments; they go out as they come where the name is known and no other key can overrule them."""
        if found.rank is not None and (self.two_arguments == "refused" or rank == found.rank):
            raise Malformed
        if found.rank is not None and rank > found.rank:
            yield from copy_json(calls.reader, _discard, self.controls)
            return
        if following == "{" and found.name is not None:
            found.rank, found.held = rank, []
            found.start(calls)
            write = calls.arguments if self._is_final(rank) else found.held.append
            yield from copy_json(calls.reader, write, self.controls)
        else:
            found.held = yield from self._held(calls, following)
            found.rank = rank
            self._known(calls, found)

    def _is_final(self, rank: int) -> bool:
        return rank == 0 or self.two_arguments == "refused"

    def _known(self, calls: CallWriter, found: _Found) -> None:
        """With both name and arguments the call is real."""
        if found.name is not None and found.rank is not None:
            found.start(calls)
            if self._is_final(found.rank):
                found.release(calls)

    def _held(self, calls: CallWriter, following: str) -> Reading[list[str]]:
        """Arguments that cannot go out as they come: before the name, or written as a JSON string."""
        held: list[str] = []
        if following == "{":
            yield from copy_json(calls.reader, held.append, self.controls)
        elif following == '"':
            held.append((yield from read_string(calls.reader, self.controls)))
            if not is_object(held[0]):
                raise Malformed
        elif following == "n" and self.null_arguments == "empty":
            yield from calls.reader.take("null")
            held.append("{}")
        else:
            raise Malformed
        return held

    def _other(self, calls: CallWriter, key: str, following: str) -> Reading[str | None]:
        allowed = dict(self.others or ())
        if self.others is not None and key not in allowed and key != self.id_key:
            raise Malformed
        if allowed.get(key) is None and key != self.id_key:
            yield from copy_json(calls.reader, _discard, self.controls)
            return None
        pieces: list[str] = []
        yield from copy_json(calls.reader, pieces.append, self.controls)
        value = json.loads("".join(pieces)) if following == '"' else None
        if allowed.get(key) not in (None, value):
            raise Malformed
        return value if key == self.id_key else None

    def write(self, call: ToolCall) -> str:
        """The call as the format writes it."""
        native_id = f'"{self.id_key}": "{quote(call.id)}", ' if self.id_key else ""
        return f'{{{native_id}"{self.name_key}": "{quote(call.name)}", "{self.argument_keys[0]}": {call.arguments}}}'

    def tag(self, name: str, schema: JsonSchema) -> JsonObject:
        """The grammar of a call of `name`, whose arguments follow `schema`."""
        native_id = (f'"{self.id_key}": "', pattern(_ID), '", ') if self.id_key else ()
        before = f'"{self.name_key}": "{quote(name)}", "{self.argument_keys[0]}": '
        return sequence("{", *native_id, before, arguments(schema), "}")


_ID = "[A-Za-z0-9_.:-]{1,40}"
"""What an id is written as that the model makes up."""


def _discard(text: str) -> None:
    """Takes a value that nobody wants."""


@dataclass(frozen=True, kw_only=True)
class JsonObjectCalls(CallSyntax):
    """`OPENER object CLOSER`, one call each; without `closers` the object's own brace ends it."""

    element: Element = CallObject()
    between: str = "\n"

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one object and its closing marker."""
        reader = calls.reader
        yield from reader.space()
        yield from self.element.read(calls)
        if self.closers:
            yield from calls.close(self.closers)
        else:
            calls.end()

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """One block a call."""
        before, after = self._frame
        return self.between.join(f"{before}{self.element.write(call)}{after}" for call in calls)

    @property
    def _frame(self) -> tuple[str, str]:
        """What stands before and behind the object of a call."""
        if self.closers:
            return f"{self.openers[0]}\n", f"\n{self.closers[0]}"
        return f"{self.openers[0]} ", ""

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """One block a call."""
        before, after = self._frame
        return CallBlock(
            opener=self.openers[0],
            first=before.removeprefix(self.openers[0]),
            call=sequence(any_of(tools, self.element.tag), after),
            between=f"{self.between}{before}",
            openers=self.openers,
        )


@dataclass(frozen=True, kw_only=True)
class JsonListCalls(CallSyntax):
    """`OPENER [object, object] CLOSER`, a list of calls; without `closers` the bracket ends it.

    An opener that ends in the bracket has opened the list.
    `bare`: what an object without the list is, a list of one or nothing.
    `empty`: what `[]` is, markers with nothing in them or text (where the opener is only plain text).
    """

    element: Element = CallObject()
    bare: Literal["one", "refused"] = "refused"
    empty: Literal["framing", "refused"] = "framing"

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read the list and its closing marker."""
        reader = calls.reader
        following = yield from reader.peek_after_space()
        if following == "{" and self.bare == "one":
            yield from self.element.read(calls)
            calls.end()
        else:
            if not opener.endswith("["):
                yield from reader.take("[")
            if (yield from reader.peek_after_space()) == "]" and self.empty == "refused":
                raise Malformed
            yield from read_list(calls, self.element.read)
        yield from calls.optional_closer(self.closers)

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """One list of all calls."""
        opener = self.openers[0] if self.openers else ""
        closer = self.closers[0] if self.closers else ""
        return f"{opener.removesuffix('[')}[{', '.join(map(self.element.write, calls))}]{closer}"

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """One list of all calls."""
        opener = self.openers[0] if self.openers else ""
        return CallBlock(
            opener=opener,
            first="" if opener.endswith("[") else "[",
            call=any_of(tools, self.element.tag),
            between=", ",
            closer=f"]{self.closers[0] if self.closers else ''}",
            openers=self.openers,
        )
