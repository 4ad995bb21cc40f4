"""An upstream that tells what it was asked, behind uvicorn on loopback."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from streamsieve.backends.loopback import loopback

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass
class Witness:
    """An ASGI application that keeps what it gets and answers as it is told."""

    answer: Handler
    scopes: list[Scope] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    client_left: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        self.scopes.append(scope)
        await self.answer(scope, receive, send)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        headers: list[tuple[bytes, bytes]] = self.scopes[-1]["headers"]
        return headers


@pytest.fixture
def serve() -> Iterator[Callable[[ASGIApp], str]]:
    """Serve an application on loopback until the test ends; the root URL comes back."""
    with ExitStack() as servers:
        yield lambda app: servers.enter_context(loopback(app))


@pytest.fixture
def witness() -> Witness:
    """Reads the whole body, then answers 200 with two bytes."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        found.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    found = Witness(answer)
    return found
