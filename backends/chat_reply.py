"""A reply of `replay` in the shapes that vLLM sends: chunks of a stream, or one JSON body."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

TOKEN_CHARACTERS = 4
"""What counts as a token in `usage` and `max_tokens`: there is no tokenizer here."""

DONE = b"data: [DONE]\n\n"
JsonObject = Mapping[str, object]


def sse(payload: JsonObject) -> bytes:
    """One event of the stream."""
    return b"data: " + json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The same raw text for every choice, under one id."""

    model: str
    text: str
    finish_reason: str
    choices: int
    prompt_characters: int
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self) -> JsonObject:
        """The body of a reply that is not streamed."""
        message: JsonObject = {
            "role": "assistant",
            "content": self.text,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "tool_calls": [],
            "reasoning": None,
        }
        choices = [
            {
                "index": index,
                "message": message,
                "logprobs": None,
                "finish_reason": self.finish_reason,
                "stop_reason": None,
                "token_ids": None,
            }
            for index in range(self.choices)
        ]
        return {
            **self._head("chat.completion"),
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": None,
            "usage": self._usage(),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
        }

    def opening(self) -> Iterator[JsonObject]:
        """The first chunk of each choice: the role, and no text."""
        for index in range(self.choices):
            yield self._chunk(index, {"role": "assistant", "content": ""}, None)

    def deltas(self, size: int) -> Iterator[JsonObject]:
        """The text in pieces of `size` code points, the choices in turn."""
        for start in range(0, len(self.text), size):
            piece = self.text[start : start + size]
            for index in range(self.choices):
                yield self._chunk(index, {"content": piece}, None)

    def closing(self, include_usage: bool) -> Iterator[JsonObject]:
        """The finish chunk of each choice, then the usage chunk where it is wanted."""
        for index in range(self.choices):
            yield self._chunk(index, {"content": ""}, self.finish_reason)
        if include_usage:
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage()}

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(self, index: int, delta: JsonObject, finish_reason: str | None) -> JsonObject:
        choice: dict[str, object] = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        if finish_reason is not None:
            choice["stop_reason"] = None
        return {**self._head("chat.completion.chunk"), "choices": [{**choice, "token_ids": None}]}

    def _usage(self) -> JsonObject:
        prompt = _tokens(self.prompt_characters)
        completion = _tokens(len(self.text)) * self.choices
        return {"prompt_tokens": prompt, "total_tokens": prompt + completion, "completion_tokens": completion}


def _tokens(characters: int) -> int:
    return -(-characters // TOKEN_CHARACTERS)
