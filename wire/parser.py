"""What reads the text of one choice: the format's machine and the stages after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from streamsieve.parsers.chain import Chain, EventSource
from streamsieve.parsers.events import CallArguments, CallEnd, CallStart, Content, Event
from streamsieve.parsers.request import Request
from streamsieve.wire.observing.observed import ObservedParser
from streamsieve.wire.observing.record import Heard
from streamsieve.wire.settings import Settings


class Parser(Protocol):
    """Text in, events out. `finish` is called once and nothing fed after it; `aclose` at any time."""

    feed_at_once: Callable[[str], list[Event]] | None
    """`feed` where nothing ever awaits in it, which saves the way of most deltas a coroutine."""

    async def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]: ...

    async def finish(self, reason: str | None) -> list[Event]: ...

    async def aclose(self) -> None: ...


def open_parser(settings: Settings, request: Request, *, whole: bool = False, heard: Heard | None = None) -> Parser:
    """A parser for one choice of one reply. The caller closes it. `heard`: where what it says is noted.

    It tells of reasoning also where the request wants none: it is for who writes the reply to leave that out.
    """
    request = replace(request, include_reasoning=True)
    machine: EventSource = _Verbatim()
    if settings.format is not None:
        machine = settings.format.machine(
            request, deliver=settings.deliver, whole=whole, tokens=settings.special_tokens
        )
    parser: Parser
    parser = _Staged(Chain(machine, settings.stage_functions)) if settings.stage_functions else _Direct(machine)
    return parser if heard is None else ObservedParser(parser, heard)


def verbatim_after(parser: Parser) -> Parser:
    """A parser for the rest of a text that `parser` gave up: all of it is content. Who listens in goes on."""
    if not isinstance(parser, ObservedParser):
        return _Direct(_Verbatim())
    parser.heard.forget()  # nobody who reads the text again has this limit, so as a case it would not hold
    return ObservedParser(_Direct(_Verbatim()), parser.heard)


class _Verbatim:
    """The machine where no parser is set: all text is content."""

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        return [Content(text)] if text else []

    def finish(self, reason: str | None) -> list[Event]:
        return []


class _Direct:
    """A machine without stages."""

    def __init__(self, machine: EventSource) -> None:
        self._machine = machine
        self.feed_at_once: Callable[[str], list[Event]] | None = machine.feed

    async def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        return self._machine.feed(text, token_ids)

    async def finish(self, reason: str | None) -> list[Event]:
        return self._machine.finish(reason)

    async def aclose(self) -> None:
        """Nothing is open."""


class _Staged:
    """A machine and its stages. A stage may leave calls out, so those that remain are counted anew:
    clients want indices from 0 without gaps."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.feed_at_once: Callable[[str], list[Event]] | None = None
        self._places: dict[int, int] = {}
        self.aclose = chain.aclose

    async def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        return self._counted(await self._chain.feed(text, token_ids))

    async def finish(self, reason: str | None) -> list[Event]:
        return self._counted(await self._chain.finish(reason))

    def _counted(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, CallStart):
                self._places[event.index] = len(self._places)
            if isinstance(event, CallStart | CallArguments | CallEnd):
                if event.index not in self._places:
                    continue
                event = replace(event, index=self._places[event.index])
            out.append(event)
        return out
