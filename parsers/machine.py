"""Runs a format over a reply: text in, events out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.events import Event
from streamsieve.parsers.marked_reply import MarkedReply
from streamsieve.parsers.request import Request
from streamsieve.parsers.rewriting import RewrittenTrays
from streamsieve.parsers.scanner import EndOfText, Reader
from streamsieve.parsers.tokens import SpecialTokens
from streamsieve.parsers.trays import Trays

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format


class Machine:
    """One reply to one request, read as it comes.

    The text of the reply is read by one generator, which this resumes for each delta. Model text
    never raises.
    """

    def __init__(
        self,
        format: Format,
        request: Request,
        *,
        deliver: Literal["stream", "complete"],
        whole: bool,
        tokens: SpecialTokens | None = None,
    ) -> None:
        self._tokens = tokens
        self._reader = Reader()
        self._trays = _trays(format, request)
        self._finished = False
        calls = CallWriter(
            self._reader, self._trays, request, format.call_id, whole=whole, complete=deliver == "complete"
        )
        calls.ends = format.ends
        if format.messages:
            self._reading = format.messages.read(calls, self._trays, request)
        else:
            self._reading = MarkedReply(format, request, calls, self._trays).read()
        next(self._reading)
        self._resume = self._reading.__next__

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Take the next text of the reply, whole characters; returns what is certain now.

        `token_ids` are the ids that `text` was decoded from, where the source has them; they are used
        where the machine was made with `tokens`.
        """
        reader = self._reader
        if token_ids is not None and self._tokens is not None:
            reader.note_tokens(self._tokens.places(text, token_ids), self._tokens)
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

    @property
    def is_thinking(self) -> bool:
        """Whether what comes next is reasoning, unless it begins a marker; no while a part of one has come."""
        plain = self._reader.plain
        return plain is not None and plain.write == self._trays.reasoning

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


def _trays(format: Format, request: Request) -> Trays:
    show = request.include_reasoning
    hold = format.reasoning is not None and format.reasoning.may_be_content(request)
    if format.rewriting:
        return RewrittenTrays(format.rewriting, show_reasoning=show, hold_reasoning=hold)
    return Trays(show_reasoning=show, hold_reasoning=hold)
