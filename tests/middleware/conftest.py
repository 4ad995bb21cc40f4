"""An ASGI application called by hand, message by message, or behind a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import hypercorn.asyncio
import hypercorn.trio
import pytest
import trio
from hypercorn.config import Config
from starlette.types import ASGIApp

from streamsieve.backends.loopback import loopback

Message = MutableMapping[str, Any]
Application = Callable[[Any, Any, Any], Awaitable[None]]

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_tide",
            "parameters": {
                "type": "object",
                "properties": {"port": {"type": "string"}, "days": {"type": "integer"}},
            },
        },
    }
]
RAW = (
    "<think>\nThe tide — I look.\n</think>\n\nOne moment. 😀\n"
    '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Bodø", "days": 2}}\n</tool_call>'
)


@pytest.fixture
def raw() -> str:
    """A reply in the formats `qwen3` (reasoning) and `hermes` (calls)."""
    return RAW


@pytest.fixture
def parsers() -> dict[str, str]:
    return {"reasoning_parser": "qwen3", "tool_parser": "hermes"}


@pytest.fixture
def chat() -> Callable[..., bytes]:
    """The body of a chat completion request."""

    def body(**more: object) -> bytes:
        return json.dumps(
            {"model": "m", "messages": [{"role": "user", "content": "Tide?"}], "tools": TOOLS, "stream": True, **more}
        ).encode()

    return body


@pytest.fixture
def chunk() -> Callable[..., bytes]:
    """One server-sent event as vLLM writes it, with a text delta of choice 0 or as told."""

    def event(text: str | None = None, *, finish: str | None = None, **more: object) -> bytes:
        delta = {} if text is None else {"content": text}
        data = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1764000000,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
            **more,
        }
        return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"

    return event


@pytest.fixture
def completion() -> Callable[..., bytes]:
    """A chat completion that is not streamed, raw text in its content."""

    def body(text: str) -> bytes:
        message = {"role": "assistant", "content": text}
        data = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1764000000,
            "model": "m",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
        }
        return json.dumps(data, ensure_ascii=False).encode()

    return body


@dataclass
class Client:
    """The server's side of one call: it gives `incoming`, then a disconnect, and keeps what is sent."""

    scope: MutableMapping[str, Any]
    incoming: list[Message]
    sent: list[Message] = field(default_factory=list)

    async def receive(self) -> Message:
        return self.incoming.pop(0) if self.incoming else {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def start(self) -> Message:
        return next(message for message in self.sent if message["type"] == "http.response.start")

    @property
    def headers(self) -> dict[bytes, bytes]:
        return {name.lower(): value for name, value in self.start["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def events(self) -> list[Any]:
        """The JSON of each server-sent event; comments are left out."""
        found = [line.removeprefix("data: ") for line in self.body.decode().split("\n") if line.startswith("data: ")]
        return [event if event == "[DONE]" else json.loads(event) for event in found]


@pytest.fixture
def call() -> Callable[..., Awaitable[Client]]:
    """Call an application once, as a server does, and give back what came out of it."""

    async def made(
        app: Application,
        body: bytes | Sequence[bytes] = b"",
        *,
        method: str = "POST",
        path: str = "/v1/chat/completions",
        headers: Iterable[tuple[bytes, bytes]] = (),
        **scope: object,
    ) -> Client:
        pieces = [body] if isinstance(body, bytes) else list(body)
        client = Client(
            {
                "type": "http",
                "asgi": {"version": "3.0", "spec_version": "2.3"},
                "http_version": "1.1",
                "method": method,
                "scheme": "http",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"",
                "root_path": "",
                "headers": [(b"host", b"test"), (b"content-type", b"application/json"), *headers],
                "client": ("127.0.0.1", 1),
                "server": ("127.0.0.1", 2),
                **scope,
            },
            [
                {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
                for number, piece in enumerate(pieces, 1)
            ],
        )
        await app(client.scope, client.receive, client.send)
        return client

    return made


@dataclass
class Engine:
    """An application that reads its request and answers with given messages; it keeps what it was given."""

    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ((b"content-type", b"text/event-stream"),)
    bodies: Iterable[bytes] | AsyncIterator[bytes] = ()
    before: Sequence[Message] = ()
    after: Sequence[Message] = ()
    start: dict[str, Any] = field(default_factory=dict)
    received: list[Message] = field(default_factory=list)
    scopes: list[MutableMapping[str, Any]] = field(default_factory=list)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        while True:
            self.received.append(await receive())
            if not self.received[-1].get("more_body", False):
                break
        for message in self.before:
            await send(message)
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers), **self.start})
        bodies = list(self.bodies)
        for number, body in enumerate(bodies, 1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})
        if not bodies:
            await send({"type": "http.response.body"})
        for message in self.after:
            await send(message)


@pytest.fixture
def engine() -> type[Engine]:
    return Engine


@contextmanager
def hypercorn_loopback(app: ASGIApp, worker: str) -> Iterator[str]:
    """`loopback`, with hypercorn on asyncio or on trio."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = Config()
    config.bind = [f"fd://{os.dup(listener.fileno())}"]  # hypercorn closes what it is given
    config.errorlog = None
    config.graceful_timeout = 1
    stop = threading.Event()

    async def on_asyncio() -> None:
        await hypercorn.asyncio.serve(app, config, shutdown_trigger=lambda: asyncio.to_thread(stop.wait))

    async def on_trio() -> None:
        await hypercorn.trio.serve(app, config, shutdown_trigger=lambda: trio.to_thread.run_sync(stop.wait))

    def serve() -> None:
        asyncio.run(on_asyncio()) if worker == "asyncio" else trio.run(on_trio)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    host, port = listener.getsockname()
    try:
        yield f"http://{host}:{port}"  # the socket listens already: a client waits in its backlog
    finally:
        stop.set()
        thread.join(10)
        listener.close()


SERVERS: dict[str, Callable[[ASGIApp], AbstractContextManager[str]]] = {
    "uvicorn": loopback,
    "hypercorn-asyncio": lambda app: hypercorn_loopback(app, "asyncio"),
    "hypercorn-trio": lambda app: hypercorn_loopback(app, "trio"),
}


@pytest.fixture(params=SERVERS)
def served(request) -> Callable[[ASGIApp], AbstractContextManager[str]]:
    """Serve an application while a block runs, by each kind of server; gives its root URL."""
    return SERVERS[request.param]
