"""Replies made of messages, for structural tags: what a format says of its messages, and what is made of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamsieve.parsers.calls.call_block import any_of
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import JsonObject, Part, either, json, optional, repeated, sequence

if TYPE_CHECKING:
    from streamsieve.parsers.structural_tag import Demand


@dataclass(frozen=True, kw_only=True)
class MessageTags:
    """Messages without what begins and ends them.

    `start`: what comes before a message behind another one, and may come before the first.
    `thought`, `aside`, `answer`: what begins a message of thinking, one of text that calls may follow, and the one
    that ends the reply. `body`: their text where it is free. `call`: a message that is a call, of the tool's name and
    the schema of its parameters.
    `end`: what ends a message behind which another comes, `call_end` one that is a call. `lasts`, `call_lasts`:
    what may end the last one; it may be missing, for a token that stops generation is no text.
    """

    start: str
    thought: str
    aside: str
    answer: Part
    body: Part
    call: Callable[[str, JsonSchema], JsonObject]
    end: str
    call_end: str
    lasts: tuple[str, ...]
    call_lasts: tuple[str, ...]

    def reply(self, demand: Demand) -> JsonObject:
        """The replies that are as `demand` has it; thinking may come before every message."""
        if demand.opener:
            raise Inexpressible(f"{demand.opener!r}: thinking ends with its own message here, not with a call")
        said = self.body if demand.response is None else json(demand.response)
        answer = sequence(self.answer, said, optional(either(*self.lasts)))
        if demand.calls == "none" or not demand.tools:
            return sequence(optional(self.start), self._before([self.thought]), answer)
        bound = demand.calls == "required" or demand.response is not None
        before = self._before([self.thought] if bound else [self.thought, self.aside])
        call = any_of(demand.schemas, self.call)
        more = [repeated(self.call_end, self.start, before, call)] if demand.parallel else []
        calls = sequence(call, *more, optional(either(*self.call_lasts)))
        return sequence(optional(self.start), before, calls if demand.calls == "required" else either(calls, answer))

    def _before(self, openings: list[str]) -> JsonObject:
        """Any number of messages that begin so, with what comes before the next one."""
        return repeated(either(*(sequence(opening, self.body) for opening in openings)), self.end, self.start)
