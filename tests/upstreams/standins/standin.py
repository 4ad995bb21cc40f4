"""What every stand-in has in common: it is asked, refuses or writes, and remembers what came to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

Body = dict[str, Any]


class Rejected(Exception):
    """The upstream does not serve this request: its status, and the body of its answer."""

    def __init__(self, status: int, body: Mapping[str, object]) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body


@dataclass
class StandIn:
    """An upstream whose model wants to write `wanted`, and then ends its turn with `end`, a special token.

    `habits`: how it gets out of free text when it has said what it wanted.
    `asked`: the bodies that came. `prompted`: what reached the chat template of each that was served.
    """

    wanted: str
    end: str = "<|im_end|>"
    special: tuple[str, ...] = ("<|im_end|>", "<tool_call>", "</tool_call>")
    habits: tuple[str, ...] = ("</think>",)
    asked: list[Body] = field(default_factory=list)
    prompted: list[Body] = field(default_factory=list)

    def messages(self, body: Body) -> list[dict[str, Any]]:
        """One message for each choice, as the upstream answers it, or Rejected."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = json.loads(await request.body())
        self.asked.append(body)
        await self._answer(json.loads(json.dumps(body)))(scope, receive, send)

    def _answer(self, body: Body) -> Response:
        try:
            messages = self.messages(body)
        except Rejected as rejected:
            return JSONResponse(rejected.body, rejected.status)
        if body.get("stream"):
            return StreamingResponse(_events(messages), media_type="text/event-stream")
        choices = [
            {"index": index, "message": {"role": "assistant", **message}, "finish_reason": _reason(message)}
            for index, message in enumerate(messages)
        ]
        return JSONResponse({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices})

    def text(self, written: str, *, keeps_end: bool, skips_special: bool) -> str:
        """A reply as its tokens are decoded."""
        text = written + (self.end if keeps_end else "")
        for token in self.special if skips_special else ():
            text = text.replace(token, "")
        return text


def _reason(message: Body) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


async def _events(messages: list[Body]) -> AsyncIterator[bytes]:
    for index, message in enumerate(messages):
        yield _event(index, {"role": "assistant", "content": ""})
        for name in ("reasoning", "reasoning_content", "content"):
            text = message.get(name) or ""
            for start in range(0, len(text), 5):
                yield _event(index, {name: text[start : start + 5]})
        for place, call in enumerate(message.get("tool_calls") or ()):
            yield _event(index, {"tool_calls": [{"index": place, **call}]})
        yield _event(index, {}, _reason(message))
    yield b"data: [DONE]\n\n"


def _event(index: int, delta: Body, reason: str | None = None) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
