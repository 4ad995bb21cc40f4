"""Where thinking starts and ends: the reasoning half of a format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from streamsieve.parsers.errors import unknown_choice
from streamsieve.parsers.request import Request


@dataclass(frozen=True, slots=True)
class Switch:
    """How `chat_template_kwargs` turns thinking on and off.

    `keys`: on where any of them that is given is true, off where none is; or, with `decides`, where the
    first that is given is true. `level`: a key that says how
    much thinking is wanted, and its value for none. Off where either says so; `default` where neither is given.
    """

    keys: tuple[str, ...] = ()
    decides: Literal["any", "first"] = "any"
    level: tuple[str, object] | None = None
    default: bool = True

    def is_on(self, kwargs: Mapping[str, object]) -> bool:
        """Whether a request with these `chat_template_kwargs` wants thinking."""
        given = [bool(kwargs[key]) for key in self.keys if kwargs.get(key) is not None]
        says = [any(given if self.decides == "any" else given[:1])] if given else []
        if self.level and (wanted := kwargs.get(self.level[0])) is not None:
            says.append(wanted != self.level[1])
        return all(says) if says else self.default


class Opening(Enum):
    """In what state a reply starts."""

    REASONING = "in reasoning"
    UNLESS_ANSWERED = "in reasoning, unless a marker of the answer or of a call comes first"
    MARKED = "in content, reasoning only behind its opener"
    ANSWERED = "in content, the prompt has closed the thinking"
    OFF = "in content, think tags are text"
    RESTORED = "in content, think tags are text, and the opener that the prompt has is put before it"


@dataclass(frozen=True, slots=True)
class ReasoningSpan:
    """The markers round thinking, and what they mean where.

    `pairs`: opener and closer; the first is the one that the format writes.
    `starts`: `open` where a reply is in reasoning from its first character, its own opener optional;
    `unless answered` where it is so, unless a marker of the answer or of a call comes first;
    `marked` where only an opener at the reply's start, or a reopener, opens it; `anywhere` where the first
    opener before any call does, and the text before it is content; `restored` where nothing is split, and
    content starts with the opener that the prompt ended in.
    `opened_by`: a key and value of `chat_template_kwargs` with which a reply starts as `open` all the same.
    `lost_opener`: text that at a reply's start counts as the opener, whose token was lost.
    `enders`: further markers that end thinking.
    `answer`: tags that may stand round the answer's text; they reach no tray. The first pair is the one
    that the format writes.
    `reopeners`: openers that open reasoning again after the answer began; others are text there.
    `repeated_opener`: what an opener inside reasoning is. `stray_closer`: what a closer in content is.
    `framing`: further markers that mean nothing within reasoning.
    `leading`: what is framing at the start of a reply that starts in content: nothing, a closer, or an
    opener with its closer behind it and only white space between.
    `ends_at_call`: whether a call that becomes real ends thinking (contract, rule 5).
    `switched_off`: what a reply without thinking is: all `text`, or as `marked` as others.
    `levels`: a key of `chat_template_kwargs` and its values, one for each of `pairs`, the first where it
    is absent; only the pair of the request's value means anything.
    `turn_heads`: what opens a turn in the prompt; think tags before the last one are history.
    `content_key`: a key of `chat_template_kwargs`; where it is true, and reasoning is all that a reply has,
    it is content instead. Such a reply's reasoning is held until an answer or a call begins.
    """

    pairs: tuple[tuple[str, str], ...]
    starts: Literal["open", "unless answered", "marked", "anywhere", "restored"] = "open"
    opened_by: tuple[str, object] | None = None
    lost_opener: str = ""
    enders: tuple[str, ...] = ()
    answer: tuple[tuple[str, str], ...] = ()
    reopeners: tuple[str, ...] = ()
    repeated_opener: Literal["text", "dropped"] = "text"
    stray_closer: Literal["text", "dropped"] = "text"
    framing: tuple[str, ...] = ()
    leading: Literal["text", "closer", "empty pair"] = "text"
    ends_at_call: bool = False
    switch: Switch = Switch()
    switched_off: Literal["text", "marked"] = "text"
    levels: tuple[str, tuple[str, ...]] | None = None
    turn_heads: tuple[str, ...] = ()
    content_key: str | None = None

    @property
    def openers(self) -> tuple[str, ...]:
        """The markers that open thinking."""
        return tuple(opener for opener, _ in self.pairs)

    @property
    def closers(self) -> tuple[str, ...]:
        """The markers that end it."""
        return (*(closer for _, closer in self.pairs), *self.enders)

    def of(self, request: Request) -> ReasoningSpan:
        """What of this counts in the reply to `request`. Raises ConfigurationError for a level that there is not."""
        if self.levels is None:
            return self
        key, values = self.levels
        level = request.chat_template_kwargs.get(key)
        if level is not None and level not in values:
            raise unknown_choice(f"chat_template_kwargs.{key}", level, values)
        pair = self.pairs[values.index(str(level)) if level is not None else 0]
        return replace(self, pairs=(pair,), levels=None)

    def opening(self, request: Request) -> tuple[Opening, int]:
        """How the reply to `request` starts, and which of `pairs` is open where it starts in reasoning."""
        if self.starts == "restored":
            return Opening.RESTORED, 0
        kwargs = request.chat_template_kwargs
        is_on = self.switch.is_on(kwargs)
        if not is_on and self.switched_off == "text":
            return Opening.OFF, 0
        tail = self._current_turn(request.prompt_tail or "")
        places = [(tail.rfind(tag), is_open, pair) for pair, tags in enumerate(self.pairs)
                  for tag, is_open in zip(tags, (True, False), strict=True)]  # fmt: skip
        places += [(tail.rfind(tag), False, 0) for tag in self.enders]
        place, is_open, pair = max(places)
        if place >= 0:
            return (Opening.REASONING, pair) if is_open else (Opening.ANSWERED, pair)
        is_opened = self.opened_by is not None and kwargs.get(self.opened_by[0]) == self.opened_by[1]
        if is_on and self.starts == "unless answered" and not is_opened:
            return Opening.UNLESS_ANSWERED, 0
        starts_open = is_opened or self.starts == "open"
        return (Opening.REASONING if is_on and starts_open else Opening.MARKED), 0

    def may_be_content(self, request: Request) -> bool:
        """Whether `request` wants reasoning to be the content of a reply that has nothing else."""
        return self.content_key is not None and bool(request.chat_template_kwargs.get(self.content_key))

    def _current_turn(self, tail: str) -> str:
        return tail[max([0, *(tail.rfind(head) for head in self.turn_heads)]) :]

    def write(self, text: str, request: Request) -> str:
        """Thinking as the format writes it in reply to `request`; empty thinking only where a reply starts in it."""
        opening, pair = self.opening(request)
        if not text and opening not in (Opening.REASONING, Opening.UNLESS_ANSWERED):
            return ""
        opener, closer = self.pairs[pair]
        opened = opening is Opening.REASONING and opener in self._current_turn(request.prompt_tail or "")
        return f"{'' if opened else opener}{text}{closer}"

    def write_answer(self, text: str) -> str:
        """The answer's text as the format writes it."""
        opener, closer = self.answer[0] if text and self.answer else ("", "")
        return f"{opener}{text}{closer}"
