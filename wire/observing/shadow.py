"""Shadow mode: the upstream's own sorting goes on to the client, and what ours would have been is compared with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from streamsieve.parsers.results import Collector, Message, ToolCall
from streamsieve.wire import json_text, sse
from streamsieve.wire.attribution import has_tokens, text_of_tokens
from streamsieve.wire.body import Mode
from streamsieve.wire.delta import REASONING_NAMES, index_of
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.parser import open_parser
from streamsieve.wire.prepared import Prepared
from streamsieve.wire.text_reader import TextReader


def ask_for_tokens(prepared: Prepared) -> None:
    """Have the upstream tell of its tokens, which is where the text is that it sorts away."""
    if prepared.settings.shadow and prepared.upstream_api == "chat" and not prepared.body.get("logprobs"):
        prepared.send({**prepared.body, "logprobs": True})
        prepared.keep_logprobs = False


@dataclass(slots=True)
class _Theirs:
    """What the upstream made of a choice."""

    reasoning: str = ""
    content: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)
    finish_reason: str | None = None

    def add(self, fields: JsonObject) -> None:
        """The next delta, or the whole message."""
        self.reasoning += next((text for name in REASONING_NAMES if isinstance(text := fields.get(name), str)), "")
        self.content += _text(fields.get("content"))
        calls = fields.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                known = self.calls.setdefault(index_of({"index": place, **call}), ["", ""])
                known[0] += _text(function.get("name"))
                known[1] += _text(function.get("arguments"))


class _Compared:
    """One choice, sorted twice."""

    def __init__(self, prepared: Prepared, index: int) -> None:
        settings = prepared.settings
        self._request = prepared.request
        self._heard = prepared.heard(index)
        parser = open_parser(settings, prepared.request, heard=self._heard)
        self._text = TextReader(parser, special=settings.special_tokens, max_held=settings.max_held)
        self._ours = Collector()
        self._theirs = _Theirs()
        self._is_known = True

    async def read(self, fields: JsonObject, choice: JsonObject) -> None:
        """The next delta, or the whole message, of `choice`."""
        self._theirs.add(fields)
        if has_tokens(choice):
            told = await self._text.feed(text_of_tokens(choice))
            self._ours.add(one.event for one in told if one.event)
        elif any(fields.get(name) for name in ("content", "tool_calls", *REASONING_NAMES)):
            self._is_known = False  # this text came without its tokens
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._theirs.finish_reason = reason
            await self._end(reason)

    async def aclose(self) -> None:
        await self._text.aclose()

    async def _end(self, reason: str) -> None:
        engines = "stop" if reason == "tool_calls" else reason
        self._ours.add(one.event for one in await self._text.finish(engines) if one.event)
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
        try:
            chunk = json_text.decode(event.data)
        except json_text.NotJsonError:
            return event.raw
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        if not isinstance(chunk, dict) or not isinstance(choices, list):
            return event.raw
        for choice in choices:
            await self._read(choice)
        kept = _kept(choices, self._prepared)
        return event.raw if kept is choices else sse.encode(json_text.encode({**chunk, "choices": kept}), event.fields)

    async def _read(self, choice: object) -> None:
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if isinstance(choice, dict) and isinstance(delta, dict):
            index = index_of(choice)
            if index not in self._choices:
                self._choices[index] = _Compared(self._prepared, index)
            await self._choices[index].read(delta, choice)


async def compare_whole(body: bytes, prepared: Prepared) -> bytes:
    """A whole completion, compared; what the client gets."""
    try:
        completion = json_text.decode(body)
    except json_text.NotJsonError:
        return body
    choices = completion.get("choices") if isinstance(completion, dict) else None
    if not isinstance(completion, dict) or not isinstance(choices, list):
        return body
    for choice in choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            compared = _Compared(prepared, index_of(choice))
            try:
                await compared.read(message, choice)
            finally:
                await compared.aclose()
    kept = _kept(choices, prepared)
    return body if kept is choices else json_text.encode({**completion, "choices": kept})


def _kept(choices: list[object], prepared: Prepared) -> list[object]:
    """The choices without the log probabilities that the client did not ask for."""
    if prepared.keep_logprobs or not any(isinstance(choice, dict) and choice.get("logprobs") for choice in choices):
        return choices
    return [{**choice, "logprobs": None} if isinstance(choice, dict) else choice for choice in choices]


def _differences(ours: Message, theirs: _Theirs) -> tuple[str, ...]:
    """The trays that differ, white space round text aside: what engines strip of it is not what is looked for."""
    pairs = {
        "reasoning": (_bare(ours.reasoning), _bare(theirs.reasoning)),
        "content": (_bare(ours.content), _bare(theirs.content)),
        "tool_calls": (
            [_call(call) for call in ours.tool_calls],
            [_call(ToolCall("", name, arguments)) for _, (name, arguments) in sorted(theirs.calls.items())],
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
