"""Reads the choice of a chat completion as events: text by the parser, and what the upstream sorted as it is."""

from __future__ import annotations

from streamsieve.parsers.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from streamsieve.wire.attribution import Told
from streamsieve.wire.chat.choice import PARSING, State
from streamsieve.wire.chat.delta import REASONING_NAMES, is_text
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.responses.output import new_id
from streamsieve.wire.text_reader import TextReader, open_text


class ChatReader:
    """Reads deltas, or one whole message.

    From the first delta that the upstream sorted (reasoning, calls, parts) everything is taken as it comes.
    """

    def __init__(self, text: TextReader, state: State) -> None:
        self.text = text
        self.state = state
        self.reason: str | None = None
        """Why the upstream ended the reply, once it did."""
        self._calls: list[object] = []  # the upstream's own indices, in order; the last is open

    async def read(self, fields: JsonObject, choice: JsonObject) -> list[Told]:
        """The events of a delta, or of a whole message, of this choice."""
        if self.state is PARSING and is_text(fields):
            return await self.text.feed(str(fields.get("content") or ""), choice)
        held = await self.end()
        self.state = State.PASSING
        return held + [Told(event) for event in self._carried(fields)]

    async def finish(self, reason: str) -> list[Told]:
        """The upstream said why the reply ended; nothing is read after it."""
        told = await self.text.finish(reason) if self.state is PARSING else []
        if self.state is State.PASSING and reason != "length":
            told += [Told(event) for event in self._end_of_call()]
        self.state, self.reason = State.FINISHED, reason
        return told

    async def end(self) -> list[Told]:
        """What is held, where the text ends without a reason."""
        return await self.text.finish(None) if self.state is PARSING else []

    def _carried(self, fields: JsonObject) -> list[Event]:
        reasoning = next((text for name in REASONING_NAMES if isinstance(text := fields.get(name), str) and text), "")
        events: list[Event] = [Reasoning(reasoning)] if reasoning else []
        if content := _text(fields.get("content")):
            events.append(Content(content))
        calls = fields.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                events += self._carried_call(call)
        return events

    def _carried_call(self, call: JsonObject) -> list[Event]:
        function = call.get("function")
        fields = function if isinstance(function, dict) else {}
        events: list[Event] = []
        index = call.get("index", len(self._calls))  # whole messages count none
        if index not in self._calls:
            events += self._end_of_call()
            self._calls.append(index)
            id = call.get("id")
            call_id = id if isinstance(id, str) and id else new_id("call")
            events.append(CallStart(self._calls.index(index), str(fields.get("name") or ""), call_id))
        arguments = fields.get("arguments")
        if isinstance(arguments, str) and arguments:
            events.append(CallArguments(self._calls.index(index), arguments))
        return events

    def _end_of_call(self) -> list[Event]:
        return [CallEnd(len(self._calls) - 1)] if self._calls else []


def open_reader(prepared: Prepared, *, whole: bool) -> ChatReader:
    """Who reads the first choice of a reply, its one message or its deltas. The caller closes its `text`."""
    settings = prepared.settings
    sorts = settings.parses and not settings.shadow  # in shadow mode the upstream's own sorting goes on
    return ChatReader(open_text(prepared, 0, whole=whole), PARSING if sorts else State.PASSING)


def refusal_of(fields: JsonObject) -> str:
    """What a delta or message says in refusal; empty nearly always."""
    refusal = fields.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def _text(content: object) -> str:
    """The text of a message's content; of parts, those that are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))
