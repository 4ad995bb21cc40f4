"""Follows a reply while it thinks, for whoever has to do something when that ends.

It asks less than a parser, and answers sooner: a call's opener ends the thinking as soon as it is written, since
whoever watches sees to it that a call follows. (A parser waits for the call to become real.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from streamsieve.parsers.format import Format
from streamsieve.parsers.messages import nowhere
from streamsieve.parsers.reasoning import Opening
from streamsieve.parsers.request import Request
from streamsieve.parsers.scanner import Markers, Reader, Reading
from streamsieve.parsers.tables import tables
from streamsieve.parsers.tokens import SpecialTokens


class Phase(Enum):
    """How far a reply is."""

    START = "an opener may come, which makes it think; nothing but white space and the beginning of one has"
    THINKING = "in thinking"
    ENDED = "in its answer or a call; it never thought, or its thinking is over"


class ThinkingWatch:
    """The thinking of one reply, as it comes.

    `opener`: of the call that ended the thinking; empty where something else did. `rest`: what was written behind the
    end of the thinking when that was seen. `closer`: the marker that ends the thinking that is open, or that may come.
    `begun`: whether something of the thinking has come, its opener and the white space before it aside.
    Of a message format there is nothing to watch here: see `MessageWatch`.
    """

    def __init__(self, format: Format | None, request: Request, tokens: SpecialTokens | None = None) -> None:
        """`tokens`: with them, and ids beside the text, a marker that is only typed is text, as for a parser."""
        self.phase = Phase.ENDED
        self.begun = False
        self.opener = self.rest = self.closer = ""
        self.openers: Collection[str] = ()
        """The markers that a reply at its start may begin to think with."""
        self._tokens = tokens
        self._reader = Reader()
        if format is None or format.messages or format.reasoning is None:
            return
        span = format.reasoning.of(request)
        opening, pair = span.opening(request)
        if opening in (Opening.OFF, Opening.ANSWERED):
            return
        self.closer = span.pairs[pair][1]
        self._span = span
        self._tables = tables(replace(format, reasoning=span), request.parse_calls, False)
        self._ends = self._tables.reasoning[pair].thinking_ends
        if opening is Opening.UNLESS_ANSWERED:
            self._ends = {one: one not in span.enders for one in self._tables.answers.literals} | self._ends
        self.phase = Phase.START if opening is Opening.MARKED else Phase.THINKING
        if opening is Opening.MARKED:
            self.openers = tuple(one for one in (*span.openers, span.lost_opener) if one)
        self._reading = self._read(pair, answers=opening is Opening.UNLESS_ANSWERED)
        next(self._reading)

    @property
    def closers(self) -> Collection[str]:
        """Every marker that `closer` may come to be."""
        return () if self.phase is Phase.ENDED else tuple(closer for _, closer in self._span.pairs)

    @property
    def ends(self) -> Mapping[str, bool]:
        """The markers that may end the thinking that is open, and whether each is the opener of calls."""
        return {} if self.phase is Phase.ENDED else self._ends

    @property
    def pending(self) -> str:
        """The end of the text so far that may be the beginning of a marker."""
        return self._reader.text[self._reader.position :]

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> None:
        """Take the next text of the reply; nothing of it counts once the thinking has ended."""
        if self.phase is Phase.ENDED:
            return
        if token_ids is not None and self._tokens is not None:
            self._reader.note_tokens(self._tokens.places(text, token_ids), self._tokens)
        self._reader.push(text)
        next(self._reading, None)

    def _read(self, pair: int, *, answers: bool) -> Reading[None]:
        reader = self._reader
        if self.phase is Phase.START:
            yield from reader.space()
            opener = yield from reader.takes(Markers.of(*self.openers))
            if opener is None:
                return self._end("")
            pair = self._tables.pair_of[opener]
            self.phase, self.closer = Phase.THINKING, self._span.pairs[pair][1]
            self._ends = self._tables.reasoning[pair].thinking_ends
        elif answers:  # thinking has no opener then: it is what does not begin otherwise
            yield from reader.space()
            if marker := (yield from reader.takes(self._tables.answers)):
                return self._end("" if marker in self._span.enders else marker)
        else:  # an opener of its own is optional, and no thinking yet
            yield from reader.space()
            yield from reader.takes(Markers.of(*self._span.openers))
        while reader.position == len(reader.text):
            yield
        self.begun = True
        ends = self._tables.reasoning[pair].thinking_ends
        if marker := (yield from reader.find(Markers.of(*ends), nowhere)):
            self._end(marker if ends[marker] else "")

    def _end(self, opener: str) -> None:
        self.phase, self.opener, self.rest = Phase.ENDED, opener, self.pending


class MessageWatch:
    """The thinking of one reply in a message format, as it comes. It may come before every message.

    `closer`: the marker that ends a message of thinking; empty where the format has none.
    """

    def __init__(self, format: Format, request: Request, tokens: SpecialTokens | None = None) -> None:
        self.closer = format.messages.thinking_end if format.messages else ""
        self._machine = format.machine(request, tokens=tokens)
        self.feed = self._machine.feed

    @property
    def is_thinking(self) -> bool:
        """Whether what comes next is thinking; no while a marker may have begun."""
        return self._machine.is_thinking
