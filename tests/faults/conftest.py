"""Upstreams that fail, each in its own way, behind a real server; what leaves them is written out byte for byte."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal

import anyio
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from streamsieve.backends.loopback import loopback

PATIENCE = 0.3
"""Seconds that a client or the proxy waits for the next byte, where an upstream falls silent."""

Header = tuple[bytes, bytes]
DONE = b"data: [DONE]\n\n"


def chunk(text: str | None, finish: str | None = None) -> bytes:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1764000000, "model": "m"}
    return b"data: " + json.dumps({**head, "choices": [choice]}, ensure_ascii=False).encode() + b"\n\n"


class DeadUpstream(ConnectionAbortedError):
    """Leaves the application, so that its server cuts the connection."""


@dataclass
class Failing:
    """An upstream that sends `pieces` and then ends its answer properly, is cut off, or falls silent."""

    pieces: Sequence[bytes]
    then: Literal["ends", "dies", "is silent"] = "ends"
    status: int = 200
    headers: Sequence[Header] = ((b"content-type", b"text/event-stream"),)
    entered: int = 0
    left: int = 0
    heard: threading.Event = field(default_factory=threading.Event)  # that a client has left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.entered += 1
        try:
            await _read_body(receive)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._cancel_when_gone, receive, tasks.cancel_scope)
                await self._answer(send)
                tasks.cancel_scope.cancel()
        except* DeadUpstream:
            raise DeadUpstream from None
        finally:
            self.left += 1

    async def _answer(self, send: Send) -> None:
        if self.pieces or self.then == "ends":
            await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await anyio.sleep(0.001)  # so that each is a piece of its own on the way
        match self.then:
            case "dies":
                raise DeadUpstream
            case "is silent":
                await anyio.sleep_forever()
            case "ends":
                await send({"type": "http.response.body", "body": b""})

    async def _cancel_when_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            continue
        self.heard.set()
        scope.cancel()


async def _read_body(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        continue


HM = chunk("<think>Hm")
HALF_A_CHARACTER = HM.partition(b"Hm")[0] + "ø".encode()[:1]
REST = [chunk(".</think>Hi"), chunk(None, "stop"), DONE]
HTML = [(b"content-type", b"text/html; charset=utf-8")]

STREAMS: dict[str, Failing] = {
    "dies between events": Failing([HM], "dies"),
    "dies in an event": Failing([HM, chunk("lost")[:40]], "dies"),
    "dies in a character": Failing([HM, HALF_A_CHARACTER], "dies"),
    "dies before its [DONE]": Failing([HM, *REST[:-1]], "dies"),
    "ends in a character": Failing([HM, HALF_A_CHARACTER]),
    "sends what is no JSON": Failing([HM, b'data: {"choices": [}\n\n', *REST]),
    "sends an error event": Failing([HM, b'data: {"error": {"message": "full", "code": "oom"}}\n\n', DONE]),
    "is silent in its answer": Failing([HM], "is silent"),
    "is silent before it": Failing([], "is silent"),
    "answers with a page": Failing([b"<h1>Hello</h1>"], headers=HTML),
    "refuses with a page": Failing([b"<h1>Bad gateway</h1>"], status=502, headers=HTML),
    "refuses for a time": Failing(
        [b'{"error": {"message": "slow down", "code": "rate"}}'],
        status=429,
        headers=[(b"content-type", b"application/json"), (b"retry-after", b"7")],
    ),
}


@pytest.fixture
def failing() -> Callable[[str], Failing]:
    """A fresh upstream by the name of its fault."""

    def made(name: str) -> Failing:
        known = STREAMS[name]
        return Failing(known.pieces, known.then, known.status, known.headers)

    return made


@pytest.fixture
def serve() -> Iterator[Callable[[ASGIApp], str]]:
    """Serve an application on loopback until the test ends; the root URL comes back."""
    with ExitStack() as servers:
        yield lambda app: servers.enter_context(loopback(app))


@pytest.fixture
def parsers() -> dict[str, str]:
    return {"reasoning_parser": "qwen3", "tool_parser": "hermes"}


@pytest.fixture
def patience() -> float:
    return PATIENCE


@pytest.fixture
def upstream() -> type[Failing]:
    """An upstream to be made."""
    return Failing


@pytest.fixture
def event() -> Callable[..., bytes]:
    """One event of a stream."""
    return chunk
