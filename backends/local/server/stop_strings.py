"""Finds stop strings in text that comes token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop string was written: where in the text it begins and ends."""

    text: str
    start: int
    end: int


class StopStrings:
    """What could be the beginning of a stop string is held back; bounded by the longest of them."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]

    def find(self, text: str) -> Stop | None:
        """The stop string that is complete first; of several that end there, the longest."""
        found = [Stop(stop, start, start + len(stop)) for stop in self._stops if (start := text.find(stop)) >= 0]
        return min(found, key=lambda stop: (stop.end, stop.start), default=None)

    def safe(self, text: str) -> int:
        """How much of `text`, in which no stop string stands, can go out."""
        return min((len(text) - _overlap(text, stop) for stop in self._stops), default=len(text))


def _overlap(text: str, stop: str) -> int:
    """How much of the end of `text` is the beginning of `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
