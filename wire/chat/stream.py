"""A streamed chat completion: the upstream's server-sent events in, the client's out."""

from __future__ import annotations

import enum
from contextlib import AsyncExitStack
from typing import Literal, TypeGuard

from streamsieve.parsers.events import Content
from streamsieve.wire import json_text, sse
from streamsieve.wire.chat.choice import PARSING, Choice, State
from streamsieve.wire.chat.chunk_template import Templates
from streamsieve.wire.chat.delta import OF_EVERY_CHUNK, index_of
from streamsieve.wire.chat.unasked_ids import without_ids
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.text_reader import open_text
from streamsieve.wire.usage import with_reasoning_tokens

_WITHOUT_NEWS = OF_EVERY_CHUNK | {"choices"}
_BROKEN_OFF = Refused("The reply broke off before its end.", code="reply_broke_off", type="server_error")


class Ending(enum.Enum):
    """What the client was told of how the reply ended."""

    OPEN = enum.auto()  # nothing
    FAILED = enum.auto()  # by an error event, after which a `[DONE]` still passes
    DONE = enum.auto()  # by `[DONE]`


class ChatStream:
    """One response. An event that needs no change goes on byte for byte.

    Where an upstream chunk becomes several, what it carries beside its choices (usage, unknown fields)
    goes with the last of them, and the event's other lines (`id`, …) with each; an event that is held
    loses them.

    Text that is held is given out before the upstream's `[DONE]`, before an error event and at the end
    of a stream that lacks both. A choice that had no finish reason by then gets none from us. Where that is
    all there is, the stream ends in an error event of ours: every client is told how its reply ended.
    """

    mode: Literal["stream"] = "stream"

    def __init__(self, prepared: Prepared) -> None:
        settings = prepared.settings
        self._prepared = prepared
        self._announces = settings.announce_calls
        self._parses = settings.parses
        self._decoder = sse.Decoder(settings.max_body)
        self._choices: dict[int, Choice] = {}
        self._templates = Templates()  # of choices that are steady
        self._last_chunk: JsonObject = {}
        self._ending = Ending.OPEN

    async def feed(self, data: bytes) -> bytes:
        """What the client gets for the next bytes of the body: whole events, or nothing."""
        if self._decoder.between_events:
            alike = await self._alike(data)
            if alike is not None:
                return alike
        return b"".join([await self._event(event) for event in self._decoder.feed(data)])

    async def close(self) -> bytes:
        """The body has ended. What it ended in, if it is no whole event, comes last and unchanged.

        A reply of which a choice began and did not finish broke off all the same.
        """
        rest = self._decoder.close()
        out = b""
        if rest is not None and _is_whole(rest):
            out, rest = await self._event(rest._replace(raw=_terminated(rest.raw))), None
        if self._parses and not all(choice.has_finished for choice in self._choices.values()):
            return out + await self.break_off()
        return out + await self._end() + (rest.raw if rest else b"")

    async def break_off(self) -> bytes:
        """The body broke: what is held, and an error event that says so. Half an event is dropped."""
        return b"" if self._ending is not Ending.OPEN else await self._fail(sse.encode(_BROKEN_OFF.body))

    async def aclose(self) -> None:
        """Free the parsers; nothing is emitted."""
        async with AsyncExitStack() as stack:  # all of them, whatever one of them raises
            for choice in self._choices.values():
                stack.push_async_callback(choice.text.aclose)

    async def _alike(self, raw: bytes) -> bytes | None:
        """What an event becomes that differs from an earlier one only in its text; None for any other."""
        for index, template in self._templates.by_index.items():
            text = template.text(raw)
            if not text:
                continue
            choice = self._choices[index]
            reader = choice.text  # whose `events` this is, without its coroutine
            feed_at_once = reader.parser.feed_at_once
            events = feed_at_once(text) if feed_at_once else await reader.parser.feed(text)
            if not events:
                reader.held += len(text)
                if reader.holds_too_much:  # the next event goes the long way, which sees to it
                    self._templates.forget(index)
                return b""
            reader.held = 0
            if len(events) == 1:  # nearly always, so it has a way without lists
                event = events[0]
                if isinstance(event, Content) and event.text == text:
                    return raw
            out = b"".join([template.fill(delta) for event in events if (delta := choice.delta(event))])
            return out + self._announced(choice) if choice.announcements else out
        return None

    def _announced(self, choice: Choice) -> bytes:
        return choice.announcements.take(_bare(self._last_chunk)) if choice.announcements else b""

    async def _event(self, event: sse.Event) -> bytes:
        raw, data, _ = event
        if data is None:
            return raw
        if data == sse.DONE:
            return await self._end_with(raw)
        alike = await self._alike(raw)
        if alike is not None:
            return alike
        if not self._parses and b'"reasoning' not in data:
            return raw  # there is nothing to rename in it
        chunk = json_text.decode_object(data)
        choices = chunk.get("choices")
        if not choices and (chunk.get("error") or event.is_error):
            return await self._fail(raw)
        if choices == [] and isinstance(chunk.get("usage"), dict):
            counted = self._counted(chunk)
            return raw if counted is chunk else sse.encode(json_text.encode(counted), event.fields)
        if not isinstance(choices, list) or not choices or not all(map(_is_chat_choice, choices)):
            return raw
        return await self._chunk(chunk, choices, event)

    async def _chunk(self, received: JsonObject, given: list[JsonObject], event: sse.Event) -> bytes:
        self._last_chunk = chunk = received if self._prepared.keep_ids else without_ids(received)
        keep = any(map(chunk.get, chunk.keys() - _WITHOUT_NEWS))
        out: list[JsonObject] = []
        for place, one in enumerate(given, 1):
            choice = self._choice(one)
            read = await choice.read(one, keep and not out and place == len(given))
            if read:
                out += self._openings(choice.index) + read if choice.index else read
            if not choice.is_steady:
                self._templates.forget(choice.index)
        if choice.is_steady and not keep and choice.is_plain(one) and self._templates.may_learn():
            self._templates.learn(choice.index, event.raw, chunk)
        out, counted = self._for_the_client(out), self._counted(chunk)
        announced = b"".join(map(self._announced, self._choices.values())) if self._announces else b""
        if out == given and counted is received:
            return event.raw + announced
        encoded = [sse.encode(_encoded(counted if one is out[-1] else _bare(chunk), one), event.fields) for one in out]
        return b"".join(encoded) + announced

    def _counted(self, chunk: JsonObject) -> JsonObject:
        """The chunk with the tokens that went into thinking in its usage, where they are known."""
        if not chunk.get("usage"):
            return chunk
        return with_reasoning_tokens(chunk, [choice.reasoning_tokens for choice in self._choices.values()])

    async def _end_with(self, done: bytes) -> bytes:
        """`[DONE]`, after what the parsers hold; once."""
        if self._ending is Ending.DONE:
            return b""
        self._ending = Ending.DONE
        self._prepared.note_end("complete")  # clients leave at [DONE]
        return await self._end() + done

    async def _fail(self, error: bytes) -> bytes:
        """The event that says that the reply failed, after what the parsers hold."""
        self._ending = Ending.FAILED if self._ending is Ending.OPEN else self._ending
        self._prepared.note_end("broken_off")
        return await self._end() + error

    async def _end(self) -> bytes:
        """What the parsers hold."""
        out = self._for_the_client([held for choice in self._choices.values() for held in await choice.end()])
        self._templates = Templates()
        encoded = b"".join(sse.encode(_encoded(_bare(self._last_chunk), choice)) for choice in out)
        return encoded + b"".join(map(self._announced, self._choices.values()))

    def _for_the_client(self, choices: list[JsonObject]) -> list[JsonObject]:
        return choices if self._prepared.keep_ids else list(map(without_ids, choices))

    def _choice(self, given: JsonObject) -> Choice:
        index = index_of(given)
        if index not in self._choices:
            state = PARSING if self._parses else State.PASSING
            text = open_text(self._prepared, index)
            self._choices[index] = Choice(index, text, state, self._prepared.request, self._prepared.settings)
        return self._choices[index]

    def _openings(self, index: int) -> list[JsonObject]:
        """The roles of earlier choices that are still held: the openai client wants choices to start in order."""
        earlier = sorted(other for other in self._choices if other < index)
        return [opening for other in earlier for opening in self._choices[other].open()]


def _is_chat_choice(choice: object) -> TypeGuard[JsonObject]:
    return (
        isinstance(choice, dict)
        and isinstance(choice.get("index", 0), int)
        and "delta" in choice
        and isinstance(choice["delta"], dict | None)
    )


def _bare(chunk: JsonObject) -> JsonObject:
    """A chunk without what is said only once."""
    return {name: value for name, value in chunk.items() if name in OF_EVERY_CHUNK}


def _encoded(chunk: JsonObject, choice: JsonObject) -> bytes:
    return json_text.encode({**chunk, "choices": [choice]})


def _is_whole(event: sse.Event) -> bool:
    """Whether an event that lacks its blank line lacks nothing else."""
    if event.data is None or event.data == sse.DONE:
        return event.data is not None
    try:
        json_text.decode(event.data)
    except json_text.NotJsonError:
        return False
    return True


def _terminated(raw: bytes) -> bytes:
    return raw + (b"\n" if raw.endswith((b"\n", b"\r")) else b"\n\n")
