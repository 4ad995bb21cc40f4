"""Replies in the shapes that vLLM sends: chunks of a stream, or one JSON body."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Protocol

from streamsieve.backends.reply import Piece, TokenLogprob, Usage
from streamsieve.wire import json_text
from streamsieve.wire.json_text import JsonObject

DONE = b"data: [DONE]\n\n"


def sse(payload: JsonObject) -> bytes:
    """One event of the stream."""
    return b"data: " + json_text.encode(payload) + b"\n\n"


class ReplyWriter(Protocol):
    """Writes one reply under one id."""

    def opening(self, index: int) -> JsonObject | None:
        """What opens a choice in a stream, before its text; None where nothing does."""

    def chunk(self, index: int, piece: Piece) -> JsonObject:
        """The chunk of a stream for one piece of a choice."""

    def usage_chunk(self, usage: Usage | None) -> JsonObject:
        """The last chunk of a stream whose client wants to know the usage."""

    def whole(self, choices: Sequence[Piece], usage: Usage | None) -> JsonObject:
        """The body of a reply that is not streamed; each choice is one piece."""


class ChatWriter:
    """Chat completions (https://platform.openai.com/docs/api-reference/chat)."""

    def __init__(self, model: str) -> None:
        self.id = f"chatcmpl-{uuid.uuid4().hex}"
        self._model = model
        self._created = int(time.time())

    def opening(self, index: int) -> JsonObject:
        """The role, and no text."""
        return self._chunk(index, {"role": "assistant", "content": ""}, Piece())

    def chunk(self, index: int, piece: Piece) -> JsonObject:
        return self._chunk(index, {"content": piece.text}, piece)

    def usage_chunk(self, usage: Usage | None) -> JsonObject:
        return {**self._head("chat.completion.chunk"), "choices": [], "usage": usage_object(usage)}

    def whole(self, choices: Sequence[Piece], usage: Usage | None) -> JsonObject:
        return {
            **self._head("chat.completion"),
            "choices": [_chat_choice(index, piece) for index, piece in enumerate(choices)],
            "service_tier": None,
            "system_fingerprint": None,
            "usage": usage_object(usage),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
        }

    def _head(self, kind: str) -> JsonObject:
        return {"id": self.id, "object": kind, "created": self._created, "model": self._model}

    def _chunk(self, index: int, delta: JsonObject, piece: Piece) -> JsonObject:
        choice: JsonObject = {
            "index": index,
            "delta": delta,
            "logprobs": _chat_logprobs(piece),
            "finish_reason": piece.finish_reason,
        }
        if piece.finish_reason is not None:
            choice["stop_reason"] = piece.stop_reason
        return {**self._head("chat.completion.chunk"), "choices": [{**choice, "token_ids": _ids(piece)}]}


class TextWriter:
    """Completions of a bare prompt (https://platform.openai.com/docs/api-reference/completions)."""

    def __init__(self, model: str) -> None:
        self.id = f"cmpl-{uuid.uuid4().hex}"
        self._model = model
        self._created = int(time.time())
        self._offsets: dict[int, int] = {}

    def opening(self, index: int) -> None:
        return None

    def chunk(self, index: int, piece: Piece) -> JsonObject:
        offset = self._offsets.get(index, 0)
        self._offsets[index] = offset + len(piece.text)
        return {**self._head(), "choices": [_text_choice(index, piece, offset)]}

    def usage_chunk(self, usage: Usage | None) -> JsonObject:
        return {**self._head(), "choices": [], "usage": usage_object(usage)}

    def whole(self, choices: Sequence[Piece], usage: Usage | None) -> JsonObject:
        written = [_text_choice(index, piece, 0) for index, piece in enumerate(choices)]
        return {**self._head(), "choices": written, "usage": usage_object(usage)}

    def _head(self) -> JsonObject:
        return {"id": self.id, "object": "text_completion", "created": self._created, "model": self._model}


def usage_object(usage: Usage | None) -> JsonObject | None:
    """OpenAI's `usage`."""
    if usage is None:
        return None
    counted: JsonObject = {
        "prompt_tokens": usage.prompt,
        "total_tokens": usage.prompt + usage.completion,
        "completion_tokens": usage.completion,
    }
    if usage.cached is not None:
        counted["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    return counted


def _chat_choice(index: int, piece: Piece) -> JsonObject:
    message: JsonObject = {
        "role": "assistant",
        "content": piece.text,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": [],
        "reasoning": None,
    }
    return {
        "index": index,
        "message": message,
        "logprobs": _chat_logprobs(piece),
        "finish_reason": piece.finish_reason,
        "stop_reason": piece.stop_reason,
        "token_ids": _ids(piece),
    }


def _text_choice(index: int, piece: Piece, offset: int) -> JsonObject:
    return {
        "index": index,
        "text": piece.text,
        "logprobs": _text_logprobs(piece, offset),
        "finish_reason": piece.finish_reason,
        "stop_reason": piece.stop_reason,
        "token_ids": _ids(piece),
    }


def _ids(piece: Piece) -> list[int] | None:
    return list(piece.token_ids) if piece.token_ids else None


def _chat_logprobs(piece: Piece) -> JsonObject | None:
    if piece.logprobs is None:
        return None
    content = [{**_entry(token), "top_logprobs": list(map(_entry, token.top))} for token in piece.logprobs]
    return {"content": content, "refusal": None}


def _entry(token: TokenLogprob) -> JsonObject:
    return {"token": token.text, "logprob": token.logprob, "bytes": list(token.bytes)}


def _text_logprobs(piece: Piece, offset: int) -> JsonObject | None:
    if piece.logprobs is None:
        return None
    offsets = []
    for token in piece.logprobs:
        offsets.append(offset)
        offset += len(token.text)
    return {
        "tokens": [token.text for token in piece.logprobs],
        "token_logprobs": [token.logprob for token in piece.logprobs],
        "top_logprobs": [{other.text: other.logprob for other in token.top} for token in piece.logprobs],
        "text_offset": offsets,
    }
