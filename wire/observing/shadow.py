"""Shadow mode: the upstream's own sorting goes on to the client, and what ours would have been is compared with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from streamsieve.parsers.results import Collector, Message, ToolCall
from streamsieve.wire import json_text, sse
from streamsieve.wire.attribution import text_of_tokens
from streamsieve.wire.body import Mode
from streamsieve.wire.chat.delta import REASONING_NAMES, TRAYS, index_of
from streamsieve.wire.chat.unasked_ids import without_ids
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.text_reader import open_text

_OF_A_DELTA = 64
"""Bytes that a delta takes beside its text, about."""


def ask_for_tokens(prepared: Prepared) -> None:
    """Have the upstream tell of its tokens, which is where the text is that it sorts away.

    It is asked for their ids too, where it has any: else vLLM leaves chunks out that have nothing but markers.
    """
    body, dialect = prepared.body, prepared.settings.dialect
    if prepared.upstream_api != "chat":
        return
    ids = dialect.token_ids if dialect is not None else {}
    prepared.keep_logprobs = bool(body.get("logprobs"))
    prepared.keep_ids = all(body.get(name) == value for name, value in ids.items())
    if not (prepared.keep_logprobs and prepared.keep_ids):
        prepared.send({**body, "logprobs": True, **ids})


@dataclass(slots=True)
class _Theirs:
    """What the upstream made of a choice."""

    reasoning: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    calls: dict[int, tuple[list[str], list[str]]] = field(default_factory=dict)
    """The pieces of each call's name and arguments."""
    finish_reason: str | None = None

    def add(self, fields: JsonObject) -> None:
        """The next delta, or the whole message."""
        self.reasoning.append(next((text for name in REASONING_NAMES if (text := _text(fields.get(name)))), ""))
        self.content.append(_text(fields.get("content")))
        calls = fields.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                name, arguments = self.calls.setdefault(index_of({"index": place, **call}), ([], []))
                name.append(_text(function.get("name")))
                arguments.append(_text(function.get("arguments")))


class _Compared:
    """One choice, sorted twice."""

    def __init__(self, prepared: Prepared, index: int) -> None:
        self._request = prepared.request
        self._heard = prepared.heard(index)
        self._text = open_text(prepared, index)
        self._ours = Collector()
        self._theirs = _Theirs()
        self._left = prepared.settings.max_body  # so many bytes more may be kept
        self._is_known = True

    async def read(self, fields: JsonObject, choice: JsonObject) -> None:
        """The next delta, or the whole message, of `choice`."""
        text = text_of_tokens(choice)
        self._left -= len(text) + _OF_A_DELTA
        if self._left < 0 or (not text and any(fields.get(name) for name in TRAYS)):
            self._give_up()  # it is too long, or this text came without its tokens
        if self._is_known:
            self._theirs.add(fields)
            told = await self._text.feed(text)
            self._ours.add(one.event for one in told if one.event)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._theirs.finish_reason = reason
            await self._end(reason)

    async def aclose(self) -> None:
        await self._text.aclose()

    def _give_up(self) -> None:
        """Not all of the text is known, so there is nothing to compare, nor to record."""
        self._is_known = False
        self._theirs, self._ours = _Theirs(), Collector()
        if self._heard is not None:
            self._heard.forget()

    async def _end(self, reason: str) -> None:
        engines = "stop" if reason == "tool_calls" else reason
        told = await self._text.finish(engines)
        self._ours.add(one.event for one in told if one.event)
        if self._heard is not None and self._is_known:
            self._heard.differs = _differences(self._ours.message(engines, self._request), self._theirs)


class ShadowStream:
    """A stream that goes on as it came, but for log probabilities that only we asked for."""

    mode: Mode = "stream"

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._decoder = sse.Decoder(prepared.settings.max_body)
        self._choices: dict[int, _Compared] = {}

    async def feed(self, data: bytes) -> bytes:
        return b"".join([await self._event(event) for event in self._decoder.feed(data)])

    async def close(self) -> bytes:
        rest = self._decoder.close()
        return b"" if rest is None else await self._event(rest)

    async def break_off(self) -> bytes:
        return b""

    async def aclose(self) -> None:
        for choice in self._choices.values():
            await choice.aclose()

    async def _event(self, event: sse.Event) -> bytes:
        if event.data is None or event.data == sse.DONE:
            return event.raw
        chunk = json_text.decode_object(event.data)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return event.raw
        for choice in choices:
            await self._read(choice)
        kept = _kept(chunk, choices, self._prepared)
        return event.raw if kept == chunk else sse.encode(json_text.encode(kept), event.fields)

    async def _read(self, choice: object) -> None:
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if isinstance(choice, dict) and isinstance(delta, dict):
            index = index_of(choice)
            if index not in self._choices:
                self._choices[index] = _Compared(self._prepared, index)
            await self._choices[index].read(delta, choice)


async def compare_whole(body: bytes, prepared: Prepared) -> bytes:
    """A whole completion, compared; what the client gets."""
    completion = json_text.decode_object(body)
    choices = completion.get("choices")
    if not isinstance(choices, list):
        return body
    for choice in choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            compared = _Compared(prepared, index_of(choice))
            try:
                await compared.read(message, choice)
            finally:
                await compared.aclose()
    kept = _kept(completion, choices, prepared)
    return body if kept == completion else json_text.encode(kept)


def _kept(reply: JsonObject, choices: list[object], prepared: Prepared) -> JsonObject:
    """The reply, or a chunk of it, without the log probabilities and ids that the client did not ask for."""
    if prepared.keep_logprobs and prepared.keep_ids:
        return reply
    kept = [_kept_choice(choice, prepared) if isinstance(choice, dict) else choice for choice in choices]
    reply = reply if prepared.keep_ids else without_ids(reply)
    return {**reply, "choices": kept}


def _kept_choice(choice: JsonObject, prepared: Prepared) -> JsonObject:
    if not prepared.keep_logprobs and choice.get("logprobs"):
        choice = {**choice, "logprobs": None}
    return choice if prepared.keep_ids else without_ids(choice)


def _differences(ours: Message, theirs: _Theirs) -> tuple[str, ...]:
    """The trays that differ, white space round text aside: what engines strip of it is not what is looked for."""
    pairs = {
        "reasoning": (_bare(ours.reasoning), _bare("".join(theirs.reasoning))),
        "content": (_bare(ours.content), _bare("".join(theirs.content))),
        "tool_calls": (
            [_call(call) for call in ours.tool_calls],
            [_call(ToolCall("", "".join(name), "".join(json))) for _, (name, json) in sorted(theirs.calls.items())],
        ),
        "finish_reason": (ours.finish_reason, theirs.finish_reason),
    }
    return tuple(tray for tray, (one, other) in pairs.items() if one != other)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _bare(text: str | None) -> str:
    return (text or "").strip()


def _call(call: ToolCall) -> tuple[str, object]:
    """Name and arguments, these as JSON where they are, however they are spaced."""
    try:
        return call.name, json.loads(call.arguments or "{}")
    except ValueError:
        return call.name, call.arguments
