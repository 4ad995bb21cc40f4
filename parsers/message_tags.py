"""Replies made of messages, for structural tags: what a format says of its messages, and what is made of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.tag_parts import JsonObject, Part, either, optional, repeated, sequence

if TYPE_CHECKING:
    from streamsieve.parsers.structural_tag import Demand


@dataclass(frozen=True, kw_only=True)
class MessageTags:
    """Messages without what begins and ends them.

    `start`: what comes before a message behind another one, and may come before the first.
    `thought`, `aside`: a message of thinking, and one of text that calls may follow. `answer`: one that ends
    the reply. `call`: one call, None where there is no tool.
    `end`: what ends a message behind which another comes, `call_end` one that is a call. `lasts`, `call_lasts`:
    what may end the last one; it may be missing, for a token that stops generation is no text.
    """

    start: str
    thought: Part
    aside: Part
    answer: Part
    call: Part | None
    end: str
    call_end: str
    lasts: tuple[str, ...]
    call_lasts: tuple[str, ...]

    def reply(self, demand: Demand) -> JsonObject:
        """The replies that are as `demand` has it; thinking may come before every message."""
        if demand.opener:
            raise Inexpressible(f"{demand.opener!r}: thinking ends with its own message here, not with a call")
        thoughts = repeated(self.thought, self.end, self.start)
        answer = sequence(self.answer, optional(either(*self.lasts)))
        if demand.calls == "none" or self.call is None:
            return sequence(optional(self.start), thoughts, answer)
        bound = demand.calls == "required" or demand.response is not None
        before = thoughts if bound else repeated(either(self.thought, self.aside), self.end, self.start)
        more = [repeated(self.call_end, self.start, before, self.call)] if demand.parallel else []
        calls = sequence(self.call, *more, optional(either(*self.call_lasts)))
        return sequence(optional(self.start), before, calls if demand.calls == "required" else either(calls, answer))
