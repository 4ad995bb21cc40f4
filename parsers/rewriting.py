"""Formats that write some of their text differently from how it is meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from streamsieve.parsers.events import Event
from streamsieve.parsers.trays import Trays


class Rewriting(Protocol):
    """Rewrites one run of text as it comes."""

    def feed(self, text: str) -> str:
        """What is certain of the text up to here and has not come out before."""

    def flush(self) -> str:
        """The rest: the run ends here. What is fed next begins another."""


class RewrittenTrays(Trays):
    """Trays whose reasoning and content are rewritten on the way in; calls are not, and end a run of text."""

    __slots__ = ("_content_runs", "_reasoning_runs", "_rewritten_content", "_rewritten_reasoning")

    def __init__(self, rewriting: Callable[[], Rewriting], *, show_reasoning: bool, hold_reasoning: bool) -> None:
        super().__init__(show_reasoning=show_reasoning, hold_reasoning=hold_reasoning)
        self._rewritten_reasoning = rewriting()
        self._rewritten_content = rewriting()
        self._reasoning_runs = self._content_runs = False

    def reasoning(self, text: str) -> None:
        """Text for the reasoning tray."""
        self._reasoning_runs = True
        if written := self._rewritten_reasoning.feed(text):
            super().reasoning(written)

    def content(self, text: str) -> None:
        """Text for the content tray."""
        if self._reasoning_runs:
            self._end_reasoning()
        self._content_runs = True
        if written := self._rewritten_content.feed(text):
            super().content(written)

    def call(self, events: list[Event]) -> None:
        """A call, or the beginning of one, came here."""
        self._end_reasoning()
        self._end_content()
        super().call(events)

    def close(self) -> None:
        """The reply is over."""
        self._end_reasoning()
        self._end_content()
        super().close()

    def _end_reasoning(self) -> None:
        if self._reasoning_runs:
            self._reasoning_runs = False
            super().reasoning(self._rewritten_reasoning.flush())

    def _end_content(self) -> None:
        if self._content_runs:
            self._content_runs = False
            super().content(self._rewritten_content.flush())
