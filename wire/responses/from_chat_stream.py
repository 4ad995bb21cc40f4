"""A streamed chat completion as a streamed response."""

from __future__ import annotations

from typing import Literal

from streamsieve.wire import json_text, sse
from streamsieve.wire.chat.choice import PARSING, State
from streamsieve.wire.chat.chunk_template import Templates
from streamsieve.wire.chat.delta import OF_EVERY_CHUNK
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.responses.chat_reader import open_reader, refusal_of
from streamsieve.wire.responses.event_writer import EventWriter
from streamsieve.wire.responses.output import Output
from streamsieve.wire.responses.phase import Phase
from streamsieve.wire.responses.reply_object import BROKEN_OFF, SERVER_ERROR, ReplyObject, ending, error_of, usage_of

_PLAIN_CHOICE = frozenset({"index", "delta"})
_WITHOUT_NEWS = OF_EVERY_CHUNK | {"choices"}


class FromChatStream:
    """One response, made of the chunks of a completion's first choice.

    Items are done when the completion has its finish reason. The response is over when its usage is
    known too, so at `[DONE]` or at the end of the body. It fails where the upstream says so, where it ends
    without a finish reason, and where an event of it cannot be read, as text would be missing.
    """

    mode: Literal["stream"] = "stream"

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._limit = prepared.settings.max_body
        self._decoder = sse.Decoder(self._limit)
        self._writer = EventWriter()
        self._output = Output(self._writer, prepared)
        self._reader = open_reader(prepared, whole=False)
        self._templates = Templates()
        self._phase = Phase.WAITING
        self._reply = ReplyObject(prepared.asked)

    async def feed(self, data: bytes) -> bytes:
        """What the client gets for the next bytes of the body: whole events, or nothing."""
        if self._decoder.between_events:
            alike = await self._alike(data)
            if alike is not None:
                return alike
        return b"".join([await self._event(event) for event in self._decoder.feed(data)])

    async def close(self) -> bytes:
        """The body has ended."""
        rest = self._decoder.close()
        out = await self._event(rest) if rest is not None else b""
        return out + await self._end()

    async def break_off(self) -> bytes:
        """The body broke. A reply that had its finish reason by then is whole."""
        return await self._fail(BROKEN_OFF) if self._reader.reason is None else self._terminal(None)

    async def aclose(self) -> None:
        """Free the parser; nothing is emitted."""
        await self._reader.text.aclose()

    async def _alike(self, raw: bytes) -> bytes | None:
        """The events for a chunk that differs from an earlier one only in its text; None for any other."""
        template = self._templates.by_index.get(0)
        text = template.text(raw) if template else None
        if not text:
            return None
        return self._output.plain(await self._reader.text.events(text))

    async def _event(self, event: sse.Event) -> bytes:
        raw, data, _ = event
        if data is None:
            if len(raw) > self._limit:
                return await self._fail(_unreadable("longer than max_body"))
            return raw if raw.startswith(b":") else b""
        if data == sse.DONE or self._phase is Phase.ENDED:
            return await self._end()
        alike = await self._alike(raw)
        if alike is not None:
            return alike
        try:
            chunk = json_text.decode(data)
        except json_text.NotJsonError:
            return await self._fail(_unreadable("not JSON"))
        if not isinstance(chunk, dict):
            return await self._fail(_unreadable("no JSON object"))
        choices = chunk.get("choices")
        if not choices and (chunk.get("error") or event.is_error):
            return await self._fail(error_of(chunk))
        return self._begin(chunk) + await self._chunk(chunk, raw)

    def _begin(self, chunk: JsonObject) -> bytes:
        """The first events, by the first chunk; nothing later."""
        if self._phase is not Phase.WAITING:
            return b""
        self._phase = Phase.WRITING
        self._reply.made_by(chunk)
        response: JsonObject = {"response": self._reply.in_progress()}
        return self._writer.write("response.created", response) + self._writer.write("response.in_progress", response)

    async def _chunk(self, chunk: JsonObject, raw: bytes) -> bytes:
        reader = self._reader
        usage = usage_of(chunk, reader.text.attribution)
        if usage is not None:
            self._reply.usage = usage
        choices = chunk.get("choices")
        first = next((one for one in choices if _is_first(one)), None) if isinstance(choices, list) else None
        if first is None or reader.state is State.FINISHED:
            return b""
        delta = first.get("delta")
        fields = delta if isinstance(delta, dict) else {}
        out = self._output.add(await reader.read(fields, first)) + self._output.refuse(refusal_of(fields))
        reason = first.get("finish_reason")
        if isinstance(reason, str) and reason:
            out += self._output.add(await reader.finish(reason))
            out += self._output.close("completed" if ending(reason) == "completed" else "incomplete")
        if reader.state is not PARSING or not reader.text.is_steady:
            self._templates.forget(0)
        elif choices == [first] and _is_plain(chunk, first, fields) and self._templates.may_learn():
            self._templates.learn(0, raw, chunk)
        return out

    async def _end(self) -> bytes:
        """The reply is over: how it ended, once."""
        if self._reader.reason is None:
            return await self._fail(None)
        return self._terminal(None)

    async def _fail(self, error: JsonObject | None) -> bytes:
        """What is held, and that the response failed; the error of None is the missing finish reason."""
        if self._phase is Phase.ENDED:
            return b""
        self._prepared.note_end("broken_off")
        out = self._begin({}) + self._output.add(await self._reader.end()) + self._output.close("incomplete")
        if error is not None:
            out += self._writer.write("error", {"param": None, **error})
        return out + self._terminal(error)

    def _terminal(self, error: JsonObject | None) -> bytes:
        if self._phase is Phase.ENDED:
            return b""
        self._phase = Phase.ENDED
        self._templates = Templates()
        response = self._reply.ended(self._reader.reason, self._output.items, error)
        return self._writer.write(f"response.{response['status']}", {"response": response})


def _is_first(choice: object) -> bool:
    return isinstance(choice, dict) and choice.get("index", 0) == 0


def _is_plain(chunk: JsonObject, choice: JsonObject, delta: JsonObject) -> bool:
    """Whether a chunk is nothing but text of one choice; null and empty fields say nothing."""
    tells = any(choice[name] for name in choice.keys() - _PLAIN_CHOICE)
    return delta.keys() == {"content"} and not tells and not any(chunk[name] for name in chunk.keys() - _WITHOUT_NEWS)


def _unreadable(fault: str) -> JsonObject:
    return {"code": SERVER_ERROR, "message": f"The upstream sent an event that cannot be read: it is {fault}."}
