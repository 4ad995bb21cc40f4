"""How a reply is read where a vLLM parser reads one half of it, and another or a format of ours the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.chain import EventSource
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning, Repaired
from streamsieve.parsers.format import Format, combine
from streamsieve.parsers.messages import MessageSyntax
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import EndOfText, Malformed, Reading
from streamsieve.parsers.trays import Trays
from streamsieve.parsers.vllm_plugins.sources import ReasoningSource, ToolSource

Half = type | Format
"""A parser class of vLLM's, or a format of which one half is wanted."""


@dataclass(frozen=True, kw_only=True)
class PluginReply(MessageSyntax):
    """As vLLM does it: one half splits thinking from the rest, the other reads that rest for calls.

    The text between, and the ids of calls, are put into the trays as with any format.
    """

    reasoning: Half | None = None
    tools: Half | None = None

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply."""
        relay = _Relay(self._first(calls, request), self._second(calls, request), calls, trays)
        reader = calls.reader
        try:
            while True:
                text, reader.position = reader.text[reader.position :], len(reader.text)
                if text:
                    relay.feed(text)
                yield
        except EndOfText:
            relay.finish()

    def write(self, message: Message, request: Request) -> str:
        """vLLM's parsers do not write."""
        raise Inexpressible("a parser of vLLM's only reads")

    def combined(self, reasoning: Format | None, tools: Format | None) -> Format | None:
        """Either half may be anything that has that half."""
        halves = [half.messages if half and half.messages else None for half in (reasoning, tools)]
        if any(half and not isinstance(half, PluginReply) for half in halves):
            return None  # it frames all three trays, and leaves nothing for another
        first, second = (half if isinstance(half, PluginReply) else None for half in halves)
        return replace(
            tools or reasoning,  # type: ignore[type-var]  # one of them is the format of this
            name="+".join(dict.fromkeys(one.name for one in (reasoning, tools) if one)),
            messages=PluginReply(
                reasoning=first.reasoning if first else reasoning, tools=second.tools if second else tools
            ),
            reasoning=None,
            calls=None,
        )

    def _first(self, calls: CallWriter, request: Request) -> EventSource | None:
        if isinstance(self.reasoning, Format):
            half = combine(self.reasoning, None)
            return half.machine(replace(request, parse_calls=False), whole=calls.reads_whole)
        return ReasoningSource(self.reasoning, request, whole=calls.reads_whole) if self.reasoning else None

    def _second(self, calls: CallWriter, request: Request) -> EventSource | None:
        if not request.parse_calls:
            return None
        if isinstance(self.tools, Format):
            half = combine(None, self.tools)
            return half.machine(request, deliver="complete" if calls.holding else "stream", whole=calls.reads_whole)
        return ToolSource(self.tools, request, whole=calls.reads_whole) if self.tools else None


class _Relay:
    """One reply on its way through both halves into the trays."""

    def __init__(self, first: EventSource | None, second: EventSource | None, calls: CallWriter, trays: Trays) -> None:
        self._first, self._second = first, second
        self._calls, self._trays = calls, trays

    def feed(self, text: str) -> None:
        """Take the next text."""
        if self._first is None:
            self._answer(text)
        else:
            self._split(self._first.feed(text))

    def finish(self) -> None:
        """The reply is over."""
        reason = "length" if self._calls.reader.cut else "stop"
        if self._first is not None:
            self._split(self._first.finish(reason))
        if self._second is not None:
            for event in self._second.finish(reason):
                self._put(event)
        self._leave_call()

    def _split(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Content):
                self._answer(event.text)
            else:
                self._put(event)

    def _answer(self, text: str) -> None:
        for event in [Content(text)] if self._second is None else self._second.feed(text):
            self._put(event)

    def _put(self, event: Event) -> None:
        calls, trays = self._calls, self._trays
        match event:
            case Reasoning(text):
                trays.marked = True
                trays.reasoning(text)
            case Content(text):
                trays.content(text)
            case CallStart(_, name, native_id):
                self._leave_call()
                self._begin(name, native_id)
            case CallArguments(_, json) if calls.state is CallState.REAL:
                calls.arguments(json)
            case CallEnd() if calls.state is CallState.REAL:
                calls.end()
            case Repaired(offset, rule):
                trays.repaired(offset, rule)

    def _begin(self, name: str, native_id: str) -> None:
        self._calls.begin()
        try:
            self._calls.start(name, native_id or None)
        except Malformed:  # it is no name (contract, rule 6), whatever the parser took it for
            self._calls.leave()
            self._trays.repaired(self._calls.mark, "not_a_call")
            self._calls.reader.forget()

    def _leave_call(self) -> None:
        """A call that did not end well stays as far as it came, or where it is held comes to nothing."""
        if self._calls.state is CallState.REAL:
            self._calls.stays_cut(ended=True)
            self._calls.reader.forget()
