"""A streamed response of an upstream that left raw text in its messages."""

from __future__ import annotations

from typing import Literal

from streamsieve.wire import json_text, sse
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.responses.delta_pattern import DeltaPatterns
from streamsieve.wire.responses.event_writer import EventWriter
from streamsieve.wire.responses.output import Output
from streamsieve.wire.responses.phase import Phase
from streamsieve.wire.responses.reply_object import BROKEN_OFF
from streamsieve.wire.responses.sorter import Sorter, finish_reason, tokens_given


class UpstreamStream:
    """One response. What is not of a message that is parsed goes on, numbered anew.

    A message's items are done at the response's end, where it is known whether it was cut. A response
    whose end the upstream leaves out gets none from us: what is held goes out, its items stay open, and an
    error event says that it broke off, where the upstream has not said so.
    """

    mode: Literal["stream"] = "stream"

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._decoder = sse.Decoder(prepared.settings.max_body)
        self._writer = EventWriter()
        self._sorter = Sorter(prepared, Output(self._writer, prepared), whole=False)
        self._patterns = DeltaPatterns()  # of the newest message, while that is steady
        self._phase = Phase.WAITING

    async def feed(self, data: bytes) -> bytes:
        """What the client gets for the next bytes of the body: whole events, or nothing."""
        if self._decoder.between_events:
            alike = await self._alike(data)
            if alike is not None:
                return alike
        return b"".join([await self._event(event) for event in self._decoder.feed(data)])

    async def close(self) -> bytes:
        """The body has ended. What it ended in, if it is no whole event, comes last and unchanged."""
        rest = self._decoder.close()
        if self._phase is Phase.WRITING:
            return await self.break_off()
        return await self._sorter.end(None) + (rest.raw if rest else b"")

    async def break_off(self) -> bytes:
        """The body broke: what is held, and an error event that says so. Half an event is dropped."""
        if self._phase is Phase.ENDED:
            return b""
        self._fail()
        return await self._sorter.end(None) + self._writer.write("error", {**BROKEN_OFF, "param": None})

    async def aclose(self) -> None:
        """Free the parsers; nothing is emitted."""
        await self._sorter.aclose()

    def _fail(self) -> None:
        self._phase = Phase.ENDED
        self._prepared.note_end("broken_off")

    async def _alike(self, raw: bytes) -> bytes | None:
        """The events for one that differs from an earlier delta only in text and number; None for any other."""
        pattern = self._patterns.newest
        text = pattern.text(raw) if pattern else None
        return await self._sorter.plain(text) if text else None

    async def _event(self, event: sse.Event) -> bytes:
        if event.data is None:
            return event.raw
        alike = await self._alike(event.raw)
        if alike is not None:
            return alike
        if event.data == sse.DONE:
            self._patterns.forget()
            self._phase = Phase.ENDED
            return await self._sorter.end(None) + event.raw
        try:
            body = json_text.decode(event.data)
        except json_text.NotJsonError:
            return event.raw
        if not isinstance(body, dict):
            return event.raw
        if self._phase is Phase.WAITING:
            self._phase = Phase.WRITING
        if body.get("type") != _TEXT:
            self._patterns.forget()
        match body:
            case {"output_index": int(index)}:
                return await self._of_item(body, index, event)
            case {"type": str(kind), "response": dict(response)} if kind in _TERMINAL:
                return await self._terminal(kind, body, response, event)
        if body.get("error") or body.get("type") == "error" or event.is_error:
            self._fail()
            return await self._sorter.end(None) + self._pass(body, event)
        return self._pass(body, event)

    async def _of_item(self, body: JsonObject, index: int, event: sse.Event) -> bytes:
        """What becomes of an event that is of the upstream's item at this index."""
        sorter = self._sorter
        match body:
            case {"type": "response.output_text.delta", "delta": str(delta)}:
                return await self._delta(body, index, delta, event)
            case {"type": "response.output_item.added", "item": dict(item)}:
                out = await sorter.begin(index, item)
            case {"type": "response.output_item.done", "item": dict(item)}:
                out = await sorter.done(index, item)
            case {"type": "response.refusal.delta", "delta": str(delta)} if sorter.is_read(index):
                out = sorter.output.refuse(delta)
            case _:
                out = b""
        return out + self._pass_of_item(body, index, event)

    async def _delta(self, body: JsonObject, index: int, delta: str, event: sse.Event) -> bytes:
        begun = b""
        if not self._sorter.knows(index):  # an upstream that leaves out what comes before
            begun = await self._sorter.begin(index, {"type": "message"})
        if not self._sorter.is_read(index):
            return begun + self._pass_of_item(body, index, event)
        out = await self._sorter.text(delta, tokens_given(body))
        if self._sorter.is_steady and not body.get("logprobs"):
            self._patterns.learn(event.raw, body)
        else:
            self._patterns.forget()
        return begun + out

    async def _terminal(self, kind: str, body: JsonObject, response: JsonObject, event: sse.Event) -> bytes:
        """How the response ended, after what ends with it, with our output in the place of the upstream's."""
        out = b""
        items = response.get("output")
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict) and not self._sorter.knows(index):  # it was not streamed
                out += await self._sorter.begin(index, item)
        out += await self._sorter.end(finish_reason(response) if _TERMINAL[kind] else None)
        out += self._sorter.output.close("incomplete")  # what an error left open
        self._phase = Phase.ENDED
        return out + self._pass(body, event, response={**response, "output": self._sorter.output.items})

    def _pass_of_item(self, body: JsonObject, index: int, event: sse.Event) -> bytes:
        """An event of an item that is taken as it is; nothing where that item is parsed or left out."""
        place = self._sorter.place(index)
        if place is None:
            return b"" if self._sorter.knows(index) else self._pass(body, event)
        return self._pass(body, event, output_index=place)

    def _pass(self, body: JsonObject, event: sse.Event, **changes: object) -> bytes:
        """The upstream's event with these fields changed, and the number that it has in our stream."""
        if isinstance(body.get("type"), str):  # else it is none of the API's events
            changes["sequence_number"] = self._writer.number()
        if all(body.get(name) == value for name, value in changes.items()):
            return event.raw
        return sse.encode(json_text.encode({**body, **changes}), event.fields)


_TEXT = "response.output_text.delta"

_TERMINAL = {"response.completed": True, "response.incomplete": True, "response.failed": False}
"""The events that end a response, and whether its text came to an end by itself."""
