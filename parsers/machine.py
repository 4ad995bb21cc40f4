"""Runs a format over a reply: text in, events out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Literal

from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.events import Event
from streamsieve.parsers.reasoning import Opening
from streamsieve.parsers.request import Request
from streamsieve.parsers.scanner import EndOfText, Malformed, Reader, Reading, Write
from streamsieve.parsers.tables import BLANKS, Role, Table, Tables, tables
from streamsieve.parsers.trays import Trays

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format

_FREE_RESCAN = 65_536
_RESCANS = 8


class Outcome(Enum):
    """What came of reading behind an opener."""

    MARKUP = "calls, or framing round none"
    TEXT = "no call: it is text again"
    BROKEN = "a call that broke and has to be given back"


class Machine:
    """One reply to one request, read as it comes.

    The text of the reply is read by one generator, `_reply`, which this resumes for each delta.
    Model text never raises. Time is linear in the text: what is given back is read again, and once
    that has cost more than `_RESCANS` times the reply, further text that is given back is not.
    """

    def __init__(
        self, format: Format, request: Request, *, deliver: Literal["stream", "complete"], whole: bool
    ) -> None:
        self._format = format
        self._request = request
        self._reader = Reader()
        self._trays = Trays(show_reasoning=request.include_reasoning)
        self._calls = CallWriter(
            self._reader, self._trays, request, format.call_id, whole=whole, complete=deliver == "complete"
        )
        self._rescanned = 0
        self._finished = False
        self._calls.ends = format.ends
        if format.messages:
            self._calls.boundaries = format.messages.boundaries
            self._reading = format.messages.read(self._calls, self._trays, request)
        else:
            self._reading = self._reply()
        next(self._reading)
        self._resume = self._reading.__next__

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Take the next text of the reply, whole characters; returns what is certain now.

        `token_ids` are the ids that `text` was decoded from, where the source has them.
        """
        reader = self._reader
        plain = reader.plain
        if plain is not None and text and plain[0](text) is None:  # most deltas: nothing that could begin a marker
            reader.base += len(text)
            plain[1](text)
        else:
            reader.push(text)
            self._resume()
            if reader.copying is not None:
                reader.flush()
        events = self._trays.events
        if events:
            self._trays.events = []
        return events

    def finish(self, reason: str | None = None) -> list[Event]:
        """The reply is over; returns the rest. `reason` is the engine's finish reason.

        Called again it returns nothing. No text is taken after it.
        """
        if self._finished:
            return []
        self._finished = self._reader.ended = True
        self._reader.cut = reason == "length"
        try:
            while True:  # wherever a grammar waits from now on, there is no more
                self._reading.throw(EndOfText())
        except StopIteration:
            self._trays.close()
        events, self._trays.events = self._trays.events, []
        return events

    # -- the reply --

    def _reply(self) -> Reading[None]:
        opening, pair = self._format.reasoning.opening(self._request) if self._format.reasoning else (Opening.OFF, 0)
        marked = tables(self._format, self._request.parse_calls, opening is Opening.OFF)
        self._tables = marked
        self._calls.boundaries = marked.broken
        if opening is Opening.REASONING:
            table = marked.reasoning[pair]
            yield from self._optional_opener(table)
        elif opening is Opening.MARKED:
            table = yield from self._start(marked)
        else:
            table = yield from self._answer(marked.content)
        reader, trays = self._reader, self._trays
        while True:
            if table is marked.group:
                yield from self._framing(table, trays.content)
            write = trays.reasoning if table.is_reasoning else trays.content
            marker = yield from reader.find(table.markers, write)
            if marker is None:
                return
            match table.roles[marker]:
                case Role.REASONING:
                    trays.marked = True
                    table = marked.reasoning[marked.pair_of[marker]]
                case Role.ANSWER:
                    trays.marked = True
                    table = yield from self._answer(marked.content)
                case Role.CALL:
                    if (yield from self._call(marker, write)):
                        table = marked.after_call
                case Role.GROUP:
                    if (yield from self._group(marker, write)):
                        table = marked.group
                case Role.GROUP_END:
                    table = marked.content
                case Role.LINE:
                    trays.content(marker)
                    trays.content((yield from reader.run(BLANKS)))
                    if (yield from reader.sees(marked.line_starts)):
                        yield from self._call("", write)
                case Role.FRAMING:
                    trays.marked = True
                case Role.END_OF_TURN:
                    continue

    def _start(self, marked: Tables) -> Reading[Table]:
        """A reply in which thinking has an opener of its own: at once, or the answer begins."""
        self._trays.content((yield from self._reader.space()))
        opener = yield from self._reader.takes(marked.openers)
        if opener is None:
            return (yield from self._answer(marked.content))
        self._trays.marked = True
        return marked.reasoning[marked.pair_of[opener]]

    def _optional_opener(self, table: Table) -> Reading[None]:
        """A reply that starts in thinking may open it all the same."""
        yield from self._reader.space()
        yield from self._reader.takes(table.opener)

    def _answer(self, table: Table) -> Reading[Table]:
        """The answer begins: some syntaxes have calls there without a marker."""
        if table.starts.literals:
            self._trays.content((yield from self._reader.space()))
            if (yield from self._reader.sees(table.starts)):
                yield from self._call("", self._trays.content)
        return table

    def _framing(self, table: Table, write: Write) -> Reading[bool]:
        """White space between the markers of a group is nobody's; returns whether a marker comes next."""
        space = yield from self._reader.space()
        comes = (yield from self._reader.sees(table.markers)) is not None
        if space and not comes:
            write(space)
        return comes

    # -- calls --

    def _call(self, opener: str, write: Write) -> Reading[bool]:
        """Read the calls that `opener` may have opened; whether the answer is under way now."""
        mark = self._reader.keep(len(opener))
        self._calls.open()
        outcome = yield from self._attempt(opener, write)
        if outcome is Outcome.BROKEN:
            self._give_back_broken(mark if not self._calls.survived else self._calls.mark, self._trays.content)
        self._trays.marked |= outcome is Outcome.MARKUP
        self._reader.forget()
        return self._calls.survived > 0 or outcome is Outcome.BROKEN

    def _group(self, opener: str, write: Write) -> Reading[bool]:
        """Read a group up to its first settled call; without one it was text, or framing round nothing."""
        reader, calls, table = self._reader, self._calls, self._tables.opened_group
        mark = reader.keep(len(opener))
        calls.open()
        broken = False
        marker: str | None = None
        if (yield from self._framing(table, calls.aside.append)) or not table.is_strict:
            while marker := (yield from reader.find(table.markers, calls.aside.append)):
                if table.roles[marker] is not Role.CALL:
                    break
                yield from self._call_in_group(marker)
                if calls.survived:
                    return True
                broken |= calls.state is CallState.BROKEN
                yield from self._framing(table, calls.aside.append)
        closed = marker is not None and table.roles[marker] is Role.GROUP_END
        if closed and not "".join(calls.aside).strip():
            self._trays.marked = True
        elif broken:
            reader.position -= len(marker) if marker and not closed else 0
            self._trays.content(reader.since(mark))
        else:
            self._was_text(mark, opener, write)
        reader.forget()
        return broken

    def _call_in_group(self, opener: str) -> Reading[None]:
        """Read one call of a group; what was none is text of the group."""
        self._reader.keep(len(opener))
        outcome = yield from self._attempt(opener, self._calls.text)
        if outcome is Outcome.BROKEN:
            self._give_back_broken(self._calls.mark, self._calls.text)
            self._calls.state = CallState.BROKEN
        if self._calls.survived:
            self._reader.forget()

    def _attempt(self, opener: str, write: Write) -> Reading[Outcome]:
        """Let the call syntax read behind `opener`; what comes to nothing is unread and `opener` is text."""
        calls, syntax = self._calls, self._format.calls
        assert syntax is not None, "an opener is only looked for where calls are read"
        calls.begin(len(opener))
        mark, settled = calls.mark, calls.survived
        try:
            yield from syntax.read(calls, opener)
        except (Malformed, EndOfText) as error:
            if calls.state is CallState.REAL:
                return (yield from self._broken(ended=isinstance(error, EndOfText)))
            if calls.survived == settled:
                self._was_text(mark, opener, write)
                return Outcome.TEXT
            if calls.state is CallState.TENTATIVE:  # the list ends here: the rest of it is text
                self._was_text(calls.mark, "", self._trays.content)
        return Outcome.MARKUP

    def _broken(self, *, ended: bool) -> Reading[Outcome]:
        """A real call broke off, or the reply ended within it."""
        if self._calls.stays_cut(ended=ended):
            return Outcome.MARKUP
        reader, tables = self._reader, self._tables
        stop = yield from reader.find(tables.broken, _discard)
        if stop in tables.stops:
            reader.position -= len(stop)
        return Outcome.BROKEN if self._calls.holding else Outcome.MARKUP

    def _give_back_broken(self, mark: int, write: Write) -> None:
        write(self._reader.since(mark))

    def _was_text(self, mark: int, opener: str, write: Write) -> None:
        """`opener`, read at `mark`, was no markup: it is text, and what was read behind it is read again."""
        reader = self._reader
        self._trays.repaired(mark, "not_a_call") if opener else None
        self._rescanned += reader.offset - mark
        if self._rescanned > _FREE_RESCAN + _RESCANS * reader.offset:
            write(reader.since(mark))
        else:
            reader.rewind(mark + len(opener))
            write(opener)


def _discard(text: str) -> None:
    """Takes the rest of a broken call, which a stream cannot give back."""
