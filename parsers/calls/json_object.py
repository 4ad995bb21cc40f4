"""Calls as JSON objects that hold a name and arguments: alone behind a marker, or in a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.arguments.json_text import copy_json, is_object, quote, read_string
from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.calls.call_list import read_list
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Malformed, Reading


@dataclass(frozen=True, kw_only=True)
class CallObject:
    """One JSON object as a call: its keys, in any order.

    `without_arguments`: what an object without the arguments key is, a call with `{}` or none.
    `others`: the further keys it may have, each with the one value it may have or None; None where any
    key may stand there. They are passed over.
    """

    name_key: str = "name"
    argument_keys: tuple[str, ...] = ("arguments",)
    id_key: str | None = None
    without_arguments: Literal["empty", "refused"] = "empty"
    null_arguments: Literal["empty", "refused"] = "refused"
    others: tuple[tuple[str, str | None], ...] | None = None

    def read(self, calls: CallWriter) -> Reading[None]:
        """Take the object, from its brace through its brace. Its end is not yet the call's."""
        reader = calls.reader
        name: str | None = None
        held: list[str] | None = None  # arguments that came before the name
        native_id: str | None = None
        yield from reader.take("{")
        following = yield from reader.peek_after_space()
        while following != "}":
            key = yield from read_string(reader)
            yield from reader.space()
            yield from reader.take(":")
            following = yield from reader.peek_after_space()
            if key == self.name_key and name is None:
                name = yield from read_string(reader)
                if held is not None:
                    calls.whole(name, "".join(held), native_id)
            elif key in self.argument_keys and held is None and calls.state is CallState.TENTATIVE:
                if name is not None and following == "{":
                    calls.start(name, native_id)
                    yield from copy_json(reader, calls.arguments)
                else:
                    held = yield from self._held(calls, following)
                    if name is not None:
                        calls.whole(name, "".join(held), native_id)
            elif key in (self.name_key, *self.argument_keys):
                raise Malformed
            else:
                native_id = (yield from self._other(calls, key, following)) or native_id
            following = yield from reader.peek_after_space()
            if following == ",":
                reader.position += 1
                if (yield from reader.peek_after_space()) != '"':
                    raise Malformed
            elif following != "}":
                raise Malformed
        reader.position += 1
        if calls.state is CallState.TENTATIVE:
            if name is None or self.without_arguments == "refused":
                raise Malformed
            calls.whole(name, "{}", native_id)

    def _held(self, calls: CallWriter, following: str) -> Reading[list[str]]:
        """Arguments that cannot go out as they come: before the name, or written as a JSON string."""
        held: list[str] = []
        if following == "{":
            yield from copy_json(calls.reader, held.append)
        elif following == '"':
            held.append((yield from read_string(calls.reader)))
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
        pieces: list[str] = []
        yield from copy_json(calls.reader, pieces.append)
        if allowed.get(key) is None and key != self.id_key:
            return None
        value = json.loads("".join(pieces)) if following == '"' else None
        if allowed.get(key) not in (None, value):
            raise Malformed
        return value if key == self.id_key else None

    def write(self, call: ToolCall) -> str:
        """The call as the format writes it."""
        return f'{{"{self.name_key}": "{quote(call.name)}", "{self.argument_keys[0]}": {call.arguments}}}'


@dataclass(frozen=True, kw_only=True)
class JsonObjectCalls(CallSyntax):
    """`OPENER object CLOSER`, one call each; without `closers` the object's own brace ends it."""

    element: CallObject = CallObject()
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
        before, after = ("\n", "\n" + self.closers[0]) if self.closers else (" ", "")
        return self.between.join(f"{self.openers[0]}{before}{self.element.write(call)}{after}" for call in calls)


@dataclass(frozen=True, kw_only=True)
class JsonListCalls(CallSyntax):
    """`OPENER [object, object] CLOSER`, a list of calls; without `closers` the bracket ends it.

    `bare`: what an object without the list is, a list of one or nothing.
    `empty`: what `[]` is, markers with nothing in them or text (where the opener is only plain text).
    """

    element: CallObject = CallObject()
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
            yield from reader.take("[")
            if (yield from reader.peek_after_space()) == "]" and self.empty == "refused":
                raise Malformed
            yield from read_list(calls, self.element.read)
        yield from calls.optional_closer(self.closers)

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """One list of all calls."""
        closer = self.closers[0] if self.closers else ""
        return f"{self.openers[0] if self.openers else ''}[{', '.join(map(self.element.write, calls))}]{closer}"
