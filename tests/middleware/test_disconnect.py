"""A client that goes away: the app hears of it as without us, at once, and nothing of it stays."""

from __future__ import annotations

import asyncio
import gc
import http.client
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import anyio
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import StreamingResponse
from starlette.routing import Route

from streamsieve.backends.loopback import loopback
from streamsieve.middleware import SieveMiddleware
from streamsieve.wire.exchange import Exchange

PATH = "/v1/chat/completions"
SOON = 1.0
"""Seconds in which an upstream is closed once its client has gone."""
ABORTED = 1000


class Upstream:
    """Streams thinking for ever, or so many chunks, and counts the streams that began and ended."""

    def __init__(self, chunk, *, chunks: int | None = None, pause: float = 0.05) -> None:
        self._chunk = chunk
        self._chunks = chunks
        self._pause = pause
        self.began = 0
        self.ended = 0
        self.all_ended = threading.Event()

    async def deltas(self):
        self.began += 1
        try:
            sent = 0
            while sent != self._chunks:
                yield self._chunk(f"<think>{sent} " if sent == 0 else f"{sent} ")
                sent += 1
                await anyio.sleep(self._pause)
            yield b"data: [DONE]\n\n"
        finally:
            self.ended += 1
            self.all_ended.set()

    async def answer(self, request) -> StreamingResponse:
        return StreamingResponse(self.deltas(), media_type="text/event-stream")

    def app(self, around: int, **options) -> Starlette:
        """Inside the middleware, and that inside and around as many that only pass on."""

        async def pass_on(request, call_next):
            return await call_next(request)

        passing = [Middleware(BaseHTTPMiddleware, dispatch=pass_on)] * around
        return Starlette(
            routes=[Route(PATH, self.answer, methods=["POST"])],
            middleware=[*passing, Middleware(SieveMiddleware, **options), *passing],
        )


@contextmanager
def request(url: str, body: bytes) -> Iterator[http.client.HTTPResponse]:
    """The answer to a chat completion request; when the block ends, the client goes away."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("POST", PATH, body, {"content-type": "application/json"})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


@pytest.mark.parametrize("around", [0, 2])
def test_the_upstream_of_a_client_that_leaves_is_closed_within_a_second_and_once(around, served, chunk, chat, parsers):
    upstream = Upstream(chunk)
    with served(upstream.app(around, **parsers)) as url:
        with request(url, chat()) as response:
            lines = [response.readline() for _ in range(4)]
        assert [line[:5] for line in lines] == [b"data:", b"\n", b"data:", b"\n"]
        assert upstream.all_ended.wait(SOON)
    assert (upstream.began, upstream.ended) == (1, 1)


def test_a_client_that_stays_gets_everything_through_a_deep_stack(chunk, chat, parsers):
    upstream = Upstream(chunk, chunks=30, pause=0)
    with loopback(upstream.app(4, **parsers)) as url, request(url, chat()) as response:
        body = response.read()
    assert all(b"%d" % number in body for number in range(30))
    assert body.endswith(b"data: [DONE]\n\n")
    assert upstream.all_ended.is_set()


async def test_the_apps_own_receive_gets_the_disconnect_while_it_streams(chat, chunk, parsers):
    """Disconnects are the app's to wait for; the middleware never asks."""
    asked, left = 0, asyncio.Event()
    heard = []

    async def app(scope, receive, send):
        await receive()
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": chunk("<think>a"), "more_body": True})
        left.set()
        heard.append(await receive())

    async def receive():
        nonlocal asked
        asked += 1
        if asked == 1:
            return {"type": "http.request", "body": chat(), "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message): ...

    scope = {"type": "http", "method": "POST", "path": PATH, "headers": []}
    await SieveMiddleware(app, **parsers)(scope, receive, send)
    assert heard == [{"type": "http.disconnect"}]
    assert asked == 2


def test_nothing_is_left_of_a_thousand_streams_that_broke_off(chunk, chat, parsers):
    """Exchanges, stages, upstreams and sockets, all in one process with the server."""
    live = 0

    async def stage(events):
        nonlocal live
        live += 1
        try:
            async for event in events:
                yield event
        finally:
            live -= 1

    upstream = Upstream(chunk, pause=0.001)
    before = len(os.listdir("/proc/self/fd"))
    with loopback(upstream.app(0, stages=[stage], **parsers)) as url:
        for _ in range(ABORTED):
            with request(url, chat()) as response:
                assert response.readline()
    assert (upstream.began, upstream.ended) == (ABORTED, ABORTED)
    assert live == 0
    gc.collect()
    assert [found for found in gc.get_objects() if type(found) is Exchange] == []
    assert len(os.listdir("/proc/self/fd")) <= before
