"""Reads a reply whose reasoning and calls stand between markers."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.calls.syntax import NoCalls
from streamsieve.parsers.reasoning import Opening, ReasoningSpan
from streamsieve.parsers.request import Request
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reading, Write
from streamsieve.parsers.tables import BLANKS, Role, Table, tables
from streamsieve.parsers.trays import Trays

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format

_TAG_END = Markers((">",))
_FREE_RESCAN = 65_536
_RESCANS = 8


class Outcome(Enum):
    """What came of reading behind an opener."""

    MARKUP = "calls, or framing round none"
    TEXT = "no call: it is text again"
    BROKEN = "a call that broke and has to be given back"


class MarkedReply:
    """One reply: which state it is in, and what of it may still have to be given back.

    Time is linear in the text: what is given back is read again, and once that has cost `_RESCANS`
    times the reply, what is given back further is not.
    """

    def __init__(self, format: Format, request: Request, calls: CallWriter, trays: Trays) -> None:
        self._opening, self._pair = Opening.OFF, ("", "")
        span = self._span = format.reasoning.of(request) if format.reasoning else None
        if span:
            self._opening, pair = span.opening(request)
            self._pair = span.pairs[pair]
        if span is not format.reasoning:
            format = replace(format, reasoning=span)
        self._tables = tables(format, request.parse_calls, self._opening in (Opening.OFF, Opening.RESTORED))
        self._syntax = (format.calls or NoCalls()).of(request)
        self._calls = calls
        self._calls.boundaries = self._tables.boundaries
        self._reader = calls.reader
        self._reader.ends = self._tables.ends
        self._trays = trays
        self._rescanned = 0
        self._openers_in_text = 0

    def read(self) -> Reading[None]:
        """Read the whole reply."""
        marked, reader, trays = self._tables, self._reader, self._trays
        table = yield from self._start()
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
                    table = yield from self._answer()
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
                case Role.RESTART:
                    trays.content(marker)
                    table = yield from self._answer()
                case Role.ANNOTATION:
                    yield from self._annotation(marker, write)
                case Role.STRAY_CLOSER if self._openers_in_text:
                    self._openers_in_text -= 1
                    trays.content(marker)
                case Role.FRAMING | Role.STRAY_CLOSER:
                    trays.marked = True
                case Role.END_OF_TURN:
                    continue

    def _start(self) -> Reading[Table]:
        """How the reply starts. In thinking its own opener is optional; elsewhere it opens thinking at once or not."""
        reader, marked, trays = self._reader, self._tables, self._trays
        if self._opening is Opening.REASONING:
            yield from reader.space()
            same = [opener for opener, closer in self._span.pairs if closer == self._pair[1]] if self._span else ()
            yield from reader.takes(Markers.of(*same))
            return marked.reasoning[marked.pair_of[self._pair[0]]]
        if self._opening is Opening.UNLESS_ANSWERED:
            space = yield from reader.space()
            if (yield from reader.sees(marked.answers)) is None:
                yield from reader.takes(marked.openers)
                return marked.reasoning[0]
            trays.content(space)
        if self._opening is Opening.RESTORED:
            trays.content(self._pair[0])
        elif self._span and self._span.leading != "text":
            yield from self._leading(self._span)
        if self._opening is Opening.MARKED:
            trays.content((yield from reader.space()))
            if (opener := (yield from reader.takes(marked.openers))) is not None:
                trays.marked = True
                return marked.reasoning[marked.pair_of[opener]]
        answer = yield from self._answer()
        return marked.unopened if self._opening is Opening.MARKED and answer is marked.content else answer

    def _leading(self, span: ReasoningSpan) -> Reading[None]:
        """Think markers at the start of a reply that starts in content, where they are framing."""
        reader, trays = self._reader, self._trays
        trays.content((yield from reader.space()))
        mark = reader.keep()
        if span.leading == "empty pair":
            if (yield from reader.takes(Markers.of(*span.openers))) is None:
                return reader.forget()
            yield from reader.space()
        if (yield from reader.takes(Markers.of(*span.closers))):
            trays.marked = True
        elif span.leading == "empty pair":
            trays.content(reader.since(mark))
        reader.forget()

    def _answer(self) -> Reading[Table]:
        """The answer begins: some formats have text of their own there, some syntaxes calls without a marker."""
        if self._tables.lead_ins.literals:
            yield from self._lead_in()
        starts = self._tables.answer_starts
        if starts.literals:
            self._trays.content((yield from self._reader.space()))
            if (yield from self._reader.sees(starts)):
                yield from self._call("", self._trays.content)
        return self._tables.content

    def _lead_in(self) -> Reading[None]:
        """Take what stands before the text of an answer and is no part of it."""
        reader, trays = self._reader, self._trays
        for markers in (self._tables.answer_openers, self._tables.lead_ins):
            trays.content((yield from reader.space()))
            if (yield from reader.takes(markers)):
                trays.marked = True

    def _annotation(self, opener: str, write: Write) -> Reading[None]:
        """Take a tag of which `opener` is the beginning or all; one that never ends is text."""
        reader = self._reader
        mark = reader.keep(len(opener))
        if not opener.endswith(">") and (yield from reader.find(_TAG_END, _discard)) is None:
            write(reader.since(mark))  # no marker is in it: those end as tags do
        else:
            self._trays.marked = True
        reader.forget()

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
            self._give_back_broken(self._calls.mark if self._calls.survived else mark, self._trays.content)
            if self._calls.survived:
                yield from self._reader.takes(Markers.of(*self._syntax.closers_of(opener)))
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
        comes = yield from self._framing(table, calls.aside.append)
        if self._syntax.group_starts and (yield from reader.sees(self._tables.group_starts)):
            yield from self._call_in_group("")
            if calls.survived:
                return True
            broken = calls.state is CallState.BROKEN
        if comes or self._syntax.group_text == "content":
            while marker := (yield from reader.find(table.markers, calls.aside.append)):
                if table.roles[marker] is Role.END_OF_TURN:
                    continue
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
        calls = self._calls
        calls.begin(len(opener))
        mark, settled = calls.mark, calls.survived
        try:
            yield from self._syntax.read(calls, opener)
        except (Malformed, EndOfText) as error:
            if calls.state is CallState.REAL:
                return (yield from self._broken(opener, ended=isinstance(error, EndOfText)))
            if calls.survived == settled:
                self._was_text(mark, opener, write)
                return Outcome.TEXT
            if calls.state is CallState.TENTATIVE:  # the list ends here: the rest of it is text
                self._was_text(calls.mark, "", self._trays.content)
        return Outcome.MARKUP

    def _broken(self, opener: str, *, ended: bool) -> Reading[Outcome]:
        """A real call broke off, or the reply ended within it."""
        if self._calls.stays_cut(ended=ended):
            return Outcome.MARKUP
        reader, tables = self._reader, self._tables
        stop = yield from reader.find(tables.boundaries_of.get(opener, tables.boundaries), _discard)
        outcome = Outcome.BROKEN if self._calls.holding else Outcome.MARKUP
        closes_others = outcome is Outcome.BROKEN and self._calls.survived  # the list in which the good calls are
        if stop and (stop not in self._syntax.closers_of(opener) or closes_others):
            reader.position -= len(stop)
        return outcome

    def _give_back_broken(self, mark: int, write: Write) -> None:
        write(self._reader.since(mark))

    def _was_text(self, mark: int, opener: str, write: Write) -> None:
        """`opener`, read at `mark`, was no markup: it is text, and what was read behind it is read again."""
        reader = self._reader
        self._openers_in_text += bool(opener)
        if opener or self._calls.survived:  # where no marker announced anything, nothing went wrong
            self._trays.repaired(mark, "not_a_call")
        self._rescanned += reader.offset - mark
        if self._rescanned > _FREE_RESCAN + _RESCANS * reader.offset:
            write(reader.since(mark))
        else:
            reader.rewind(mark + len(opener))
            write(opener)


def _discard(text: str) -> None:
    """Takes the rest of a broken call, which a stream cannot give back."""
