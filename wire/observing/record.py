"""What there is to tell of one exchange when it is over."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from streamsieve.parsers.events import CallEnd, CallStart, Event, Repaired
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector, Message
from streamsieve.wire.json_text import JsonObject

_logger = logging.getLogger(__name__)
_OF_A_CHUNK = 64
"""Bytes that a chunk takes beside its text, about."""

Outcome = Literal["complete", "broken_off", "abandoned", "unread", "refused"]
"""How an exchange ended: the reply came to its end; the upstream failed within its body, or ended it too soon; the
client left before; the body was none that we read; the request was refused."""

CallOutcome = Literal["complete", "cut", "broken", "not_a_call", "dropped"]
"""What became of a call: `parsers/events.py` says what the last four are."""

_OF_RULES: dict[str, CallOutcome] = {
    "cut_call": "cut",
    "broken_call": "broken",
    "not_a_call": "not_a_call",
    "broken_message": "not_a_call",
    "dropped_call": "dropped",
}


@dataclass(slots=True)
class Heard:
    """What the parser of one choice took and said.

    `texts`: what it was fed, and `reply` what came of it, where these are kept: while they take no more than
    about `most_kept` bytes. `rules`: how often each was
    applied. `most_held`: the most characters that waited at once. `finish_reason`: the upstream's.
    `differs`: the trays in which the upstream's own sorting differs (shadow mode); None where nobody looked.
    """

    most_kept: int = 0
    texts: list[str] = field(default_factory=list)
    rules: Counter[str] = field(default_factory=Counter)
    calls_begun: int = 0
    calls_ended: int = 0
    most_held: int = 0
    finish_reason: str | None = None
    differs: tuple[str, ...] | None = None
    _held: int = 0
    _kept: int = 0
    _collector: Collector = field(default_factory=Collector)

    def note(self, text: str, events: Sequence[Event]) -> None:
        """The parser was fed `text`, and these events came."""
        if self.most_kept:
            self._keep(text, events)
        if not events:
            self._held += len(text)
            self.most_held = max(self.most_held, self._held)
            return
        self._held = 0
        for event in events:
            match event:
                case CallStart():
                    self.calls_begun += 1
                case CallEnd():
                    self.calls_ended += 1
                case Repaired(rule=rule):
                    self.rules[rule] += 1

    def forget(self) -> None:
        """Keep nothing of the text: it is too long, or not all of it is known."""
        self.most_kept = 0
        self.texts, self._collector = [], Collector()

    def _keep(self, text: str, events: Sequence[Event]) -> None:
        self.texts += [text] if text else []
        self._collector.add(events)
        self._kept += len(text) + _OF_A_CHUNK
        if self._kept > self.most_kept:
            _logger.warning("a reply over max_body (%d bytes) is not recorded", self.most_kept)
            self.forget()

    def reply(self, request: Request) -> Message:
        """The whole reply, where it is kept."""
        return self._collector.message(self.finish_reason, request)

    @property
    def calls(self) -> Counter[CallOutcome]:
        """How many calls came to what."""
        found: Counter[CallOutcome] = Counter({"complete": self.calls_ended})
        for rule, count in self.rules.items():
            if rule in _OF_RULES:
                found[_OF_RULES[rule]] += count
        return +found


@dataclass(slots=True, kw_only=True)
class Record:
    """One exchange. No text of the reply is in it, unless `most_kept` is above 0 (`Heard`).

    `format`: the name of the format that reads it, "none" without one. `model`: as the request has it, cut
    where it is long. `mode`: how the body was read. `seconds`: from the request to the end; `first_seconds`:
    to the first bytes for the client, None where there were none; `parse_seconds`: of that in the parser and
    round it. `asked`: the body of the request.
    """

    format: str
    model: str | None
    api: str
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    request: Request
    asked: JsonObject
    most_kept: int = 0
    mode: Literal["pass", "stream", "whole"] = "pass"
    status: int = 0
    outcome: Outcome = "unread"
    seconds: float = 0.0
    first_seconds: float | None = None
    parse_seconds: float = 0.0
    choices: dict[int, Heard] = field(default_factory=dict)

    def end(self, outcome: Outcome) -> None:
        """Note how it ended, where that is not known yet; until then it counts as abandoned, if it is read."""
        if self.outcome in ("abandoned", "unread"):
            self.outcome = outcome

    def choice(self, index: int) -> Heard:
        """What is heard of one choice."""
        return self.choices.setdefault(index, Heard(self.most_kept))
