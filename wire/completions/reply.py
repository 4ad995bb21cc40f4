"""Completions read as chat completions whose content is the text (https://platform.openai.com/docs/api-reference/completions)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from streamsieve.wire import json_text, sse
from streamsieve.wire.body import Mode
from streamsieve.wire.json_text import JsonObject


class CompletionsAsChat:
    """A stream of completion chunks, as one of chat completion chunks."""

    mode: Mode = "stream"

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of one event; a longer one passes as it is."""
        self._decoder = sse.Decoder(limit)

    async def feed(self, data: bytes) -> bytes:
        return b"".join(map(_event, self._decoder.feed(data)))

    async def close(self) -> bytes:
        rest = self._decoder.close()
        return b"" if rest is None else _event(rest)

    async def break_off(self) -> bytes:
        return b""

    async def aclose(self) -> None:
        """Nothing is open."""


def whole(body: bytes) -> bytes:
    """A whole completion as a chat completion; anything else as it is."""
    made = _made(json_text.decode_object(body), "message", "chat.completion")
    return body if made is None else json_text.encode(made)


def _event(event: sse.Event) -> bytes:
    if event.data is None or event.data == sse.DONE:
        return event.raw
    made = _made(json_text.decode_object(event.data), "delta", "chat.completion.chunk")
    return event.raw if made is None else sse.encode(json_text.encode(made), event.fields)


def _made(completion: JsonObject, text_field: str, kind: str) -> JsonObject | None:
    """The chat completion, or chunk of one; None for what is no completion."""
    choices = completion.get("choices")
    if not isinstance(choices, list):
        return None
    return {**completion, "object": kind, "choices": [_choice(choice, text_field) for choice in choices]}


def _choice(choice: object, text_field: str) -> object:
    if not isinstance(choice, dict) or not isinstance(choice.get("text"), str):
        return choice
    others = {name: value for name, value in choice.items() if name not in ("text", "logprobs")}
    said = {"content": choice["text"]} if text_field == "delta" else {"role": "assistant", "content": choice["text"]}
    return {
        "index": 0,
        text_field: said,
        "logprobs": _logprobs(choice.get("logprobs")),
        "finish_reason": None,
        **others,
    }


def _logprobs(given: object) -> JsonObject | None:
    """The four lists of completions as the entries of chat completions."""
    if not isinstance(given, dict):
        return None
    match given:
        case {"tokens": list(tokens), "token_logprobs": list(logprobs)}:
            tops = given.get("top_logprobs")
            entries = zip_longest(tokens, logprobs, tops if isinstance(tops, list) else ())
            return {"content": [_entry(*entry) for entry in entries if isinstance(entry[0], str)]}
    return given if isinstance(given.get("content"), list) else None  # llama.cpp has those entries already


def _entry(token: str, logprob: object, top: object) -> JsonObject:
    others = top.items() if isinstance(top, Mapping) else ()
    return {
        "token": token,
        "logprob": logprob if isinstance(logprob, int | float) else -9999.0,
        "bytes": list(token.encode("utf-8", "surrogatepass")),
        "top_logprobs": [
            {"token": one, "logprob": value, "bytes": list(one.encode("utf-8", "surrogatepass"))}
            for one, value in others
        ],
    }
