"""What a call syntax tells about the calls it reads, and when of it goes out."""

from __future__ import annotations

import re
from enum import Enum

from streamsieve.parsers.call_ids import CallId
from streamsieve.parsers.events import CallArguments, CallEnd, CallStart, Event
from streamsieve.parsers.request import Request
from streamsieve.parsers.scanner import Malformed, Markers, Reader, Reading, Write
from streamsieve.parsers.trays import Trays

NAME = re.compile(r"[^\s\"'`\[\](){}<>]*")
"""A run of what a function's name may consist of (contract, rule 6)."""


_NOTHING = Markers(())


class CallState(Enum):
    """How far the call that is being read has come."""

    NONE = "between calls"
    TENTATIVE = "begun, not yet a call"
    REAL = "its name and the opening of its arguments have been read"
    BROKEN = "broke after it was real, and is to be given back"


class CallWriter:
    """Takes the calls of one reply from the syntax that reads them.

    A call goes out as it is read, from the moment it is real. Where `holding`, it goes out when it
    has ended well, so that one that breaks can still be given back whole (contract, rule 7).
    """

    def __init__(
        self, reader: Reader, trays: Trays, request: Request, call_id: CallId, *, whole: bool, complete: bool
    ) -> None:
        self.reader = reader
        self.request = request
        self.reads_whole = whole
        self.holding = whole or complete
        self._keeps_cut_calls = not complete
        self.state = CallState.NONE
        self.survived = 0
        """Calls of the present group that are settled: real ones, or where `holding` those that ended well."""
        self.ends: tuple[str, ...] = ()
        """The end-of-turn tokens of the format."""
        self.boundaries = Markers(())
        """What may come where a call ends: closers, the next call's opener, a group's markers, the end of the turn."""
        self.mark = 0
        """Offset where the present call's own text begins."""
        self.arguments: Write = self._nowhere
        """Takes the next argument text of the call that was started."""
        self.aside: list[str] = []
        self._trays = trays
        self._call_id = call_id
        self._ids: set[str] = set()
        self._index = 0
        self._start: CallStart | None = None
        self._held: list[str] = []

    # -- for the machine --

    def open(self) -> None:
        """A place where calls may stand begins: nothing of it is settled yet."""
        self.survived = 0
        self.aside = []

    def text(self, text: str) -> None:
        """Text between calls. Before the first call is settled it is not known whose it is, so it waits."""
        if self.survived:
            self._trays.content(text)
        else:
            self.aside.append(text)

    def stays_cut(self, *, ended: bool) -> bool:
        """The present call, which is real, goes no further: report it; whether what is there of it stays.

        It does where the reply was cut off within it (contract, rule 8), unless calls are delivered
        complete. A call that broke is the caller's to give back where `holding`, or to pass over.
        """
        cut = ended and self.reader.cut
        self._trays.repaired(self.mark, "cut_call" if cut else "broken_call")
        self.state = CallState.NONE
        if cut and self._keeps_cut_calls and self.holding:
            self._settle([self._start, *self._held_arguments()] if self._start else [])
        return cut and self._keeps_cut_calls

    # -- for call syntaxes --

    def begin(self, back: int = 0) -> None:
        """A call may begin here, or `back` characters before: from there on it can be given back."""
        self.mark = self.reader.keep(back)
        self.state = CallState.TENTATIVE

    def start(self, name: str, native_id: str | None = None) -> None:
        """The call is real. Raises Malformed where `name` cannot be a name (contract, rule 6)."""
        if not name or not NAME.fullmatch(name):
            raise Malformed
        if self.request.unknown_tools == "text" and name not in self.request.tools:
            raise Malformed
        self.state = CallState.REAL
        self._held = []
        if self._index >= self.request.calls_allowed:
            self._start = None
            self.arguments = self._nowhere
            if not self.holding:
                self._settle([])
            return
        self._start = CallStart(self._index, name, self._unused_id(name, native_id))
        if self.holding:
            self.arguments = self._held.append
        else:
            self._settle([self._start])
            self.arguments = self._trays.arguments(self._start.index)

    def end(self) -> None:
        """The call ended well."""
        self.state = CallState.NONE
        if self._start is None:
            self._trays.repaired(self.mark, "dropped_call")
        ended: list[Event] = [] if self._start is None else [CallEnd(self._start.index)]
        if self.holding:
            self._settle([self._start, *self._held_arguments(), *ended] if self._start else [])
        else:
            self._trays.events += ended

    def leave(self) -> None:
        """No call begins here after all, and what was read since `begin` is framing."""
        self.state = CallState.NONE

    def close(self, closers: tuple[str, ...], arguments_closers: Markers | None = None) -> Reading[None]:
        """The call is complete: take the closing marker of its arguments, where they have one, and its own; end it.

        One that is missing is forgiven where the reply or the turn ends, or another call or the end of
        the group comes; anything else there breaks the call.
        """
        reader, before = self.reader, arguments_closers or _NOTHING
        yield from reader.space()
        if (yield from reader.takes(before)):
            yield from reader.space()
        seen = yield from reader.sees(self.boundaries)
        if seen in closers:
            reader.position += len(seen or "")
        elif seen is None and not reader.may_end and not any(map(reader.ends_within, (self.boundaries, before))):
            raise Malformed
        else:
            self.unclosed()
        self.end()

    def optional_closer(self, closers: tuple[str, ...]) -> Reading[None]:
        """A list of calls is complete: take its closing marker if that comes; other text is no part of it."""
        if closers:
            space = yield from self.reader.space()
            if (yield from self.reader.takes(Markers.of(*closers))) is None:
                self._trays.content(space)

    def whole(self, name: str, arguments: str, native_id: str | None = None) -> None:
        """A call read in one piece becomes real; `end` is still to come."""
        self.start(name, native_id)
        self.arguments(arguments)

    def unclosed(self) -> None:
        """The call's closing marker is missing, which is forgiven."""
        self._trays.repaired(self.reader.offset, "unclosed_call")

    def _settle(self, events: list[Event]) -> None:
        """Nothing from before here can be given back any more: let it out, in the order written."""
        self.survived += 1
        self._trays.marked = True  # the group's opener stands before what waits
        for text in self.aside:
            self._trays.content(text)
        self.aside = []
        self._trays.call(events)
        self._index += bool(events)
        self.reader.forget()

    def _nowhere(self, json: str) -> None:
        """The arguments of a call that is left out."""

    def _held_arguments(self) -> list[Event]:
        json = "".join(self._held)
        return [CallArguments(self._index, json)] if json else []

    def _unused_id(self, name: str, native: str | None) -> str:
        number = self.request.earlier_calls + self._index
        made = self._call_id(name, number, native)
        while made in self._ids:
            made = self._call_id(name, number, None)
            number += 1
        self._ids.add(made)
        return made
