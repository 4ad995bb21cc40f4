"""Where thinking starts and ends: the reasoning half of a format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from streamsieve.parsers.request import Request


@dataclass(frozen=True, slots=True)
class Switch:
    """How `chat_template_kwargs` turns thinking on and off.

    On where any of `keys` is given and true; off where some are given and none is true; else `default`.
    """

    keys: tuple[str, ...] = ()
    default: bool = True

    def is_on(self, kwargs: Mapping[str, object]) -> bool:
        """Whether a request with these `chat_template_kwargs` wants thinking."""
        given = [bool(kwargs[key]) for key in self.keys if kwargs.get(key) is not None]
        return any(given) if given else self.default


class Opening(Enum):
    """In what state a reply starts."""

    REASONING = "in reasoning"
    MARKED = "in content, reasoning only behind its opener"
    ANSWERED = "in content, the prompt has closed the thinking"
    OFF = "in content, think tags are text"


@dataclass(frozen=True, slots=True)
class ReasoningSpan:
    """The markers round thinking, and what they mean where.

    `pairs`: opener and closer; the first is the one that the format writes.
    `starts`: `open` where a reply is in reasoning from its first character, its own opener optional;
    `marked` where only an opener at the reply's start, or a reopener, opens it.
    `reopeners`: openers that open reasoning again after the answer began; others are text there.
    `repeated_opener`: what an opener inside reasoning is. `stray_closer`: what a closer in content is.
    `ends_at_call`: whether a call that becomes real ends thinking (contract, rule 5).
    `turn_heads`: what opens a turn in the prompt; think tags before the last one are history.
    """

    pairs: tuple[tuple[str, str], ...]
    starts: Literal["open", "marked"] = "open"
    reopeners: tuple[str, ...] = ()
    repeated_opener: Literal["text", "dropped"] = "text"
    stray_closer: Literal["text", "dropped"] = "text"
    ends_at_call: bool = False
    switch: Switch = Switch()
    turn_heads: tuple[str, ...] = ()

    @property
    def openers(self) -> tuple[str, ...]:
        """The markers that open thinking."""
        return tuple(opener for opener, _ in self.pairs)

    @property
    def closers(self) -> tuple[str, ...]:
        """The markers that end it."""
        return tuple(closer for _, closer in self.pairs)

    def opening(self, request: Request) -> tuple[Opening, int]:
        """How the reply to `request` starts, and which of `pairs` is open where it starts in reasoning."""
        if not self.switch.is_on(request.chat_template_kwargs):
            return Opening.OFF, 0
        tail = self._current_turn(request.prompt_tail or "")
        places = [(tail.rfind(tag), is_open, pair) for pair, tags in enumerate(self.pairs)
                  for tag, is_open in zip(tags, (True, False), strict=True)]  # fmt: skip
        place, is_open, pair = max(places)
        if place >= 0:
            return (Opening.REASONING, pair) if is_open else (Opening.ANSWERED, pair)
        return (Opening.REASONING if self.starts == "open" else Opening.MARKED), 0

    def _current_turn(self, tail: str) -> str:
        return tail[max([0, *(tail.rfind(head) for head in self.turn_heads)]) :]

    def write(self, text: str, request: Request) -> str:
        """Thinking as the format writes it in reply to `request`; empty thinking only where a reply starts in it."""
        opening, pair = self.opening(request)
        if not text and opening is not Opening.REASONING:
            return ""
        opener, closer = self.pairs[pair]
        opened = opening is Opening.REASONING and opener in self._current_turn(request.prompt_tail or "")
        return f"{'' if opened else opener}{text}{closer}"
