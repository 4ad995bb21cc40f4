"""Listens in: on a parser, and on the body of a response."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from streamsieve.parsers.events import Event
from streamsieve.wire.body import Body, Mode
from streamsieve.wire.observing.record import Heard, Record

if TYPE_CHECKING:
    from streamsieve.wire.parser import Parser


class ObservedParser:
    """A parser that is listened in on."""

    def __init__(self, parser: Parser, heard: Heard) -> None:
        self._parser = parser
        self.heard = heard
        self.feed_at_once: Callable[[str], list[Event]] | None = self._feed_at_once if parser.feed_at_once else None
        self.aclose = parser.aclose

    async def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        events = await self._parser.feed(text, token_ids)
        self.heard.note(text, events)
        return events

    async def finish(self, reason: str | None) -> list[Event]:
        events = await self._parser.finish(reason)
        self.heard.finish_reason = reason
        self.heard.note("", events)
        return events

    def _feed_at_once(self, text: str) -> list[Event]:
        assert self._parser.feed_at_once is not None
        events = self._parser.feed_at_once(text)
        self.heard.note(text, events)
        return events


class ObservedBody:
    """A body whose time is taken, and whose end is noted."""

    def __init__(self, body: Body, record: Record, started: float) -> None:
        self._body = body
        self._record = record
        self._started = started
        if body.mode != "pass":
            record.outcome = "abandoned"  # until something better is known

    @property
    def mode(self) -> Mode:
        return self._body.mode

    async def feed(self, data: bytes) -> bytes:
        begun = time.perf_counter()
        return self._timed(await self._body.feed(data), begun)

    async def close(self) -> bytes:
        begun = time.perf_counter()
        out = self._timed(await self._body.close(), begun)
        self._record.end("complete" if self._body.mode != "pass" else "unread")
        return out

    async def break_off(self) -> bytes:
        self._record.end("broken_off")
        return await self._body.break_off()

    async def aclose(self) -> None:
        await self._body.aclose()

    def _timed(self, out: bytes, begun: float) -> bytes:
        now = time.perf_counter()
        self._record.parse_seconds += now - begun
        if out and self._record.first_seconds is None:
            self._record.first_seconds = now - self._started
        return out
