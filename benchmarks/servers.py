"""Servers of the benchmarks that go over sockets, each in a process of its own.

`python -m benchmarks.servers upstream` streams as many chunks as a request's `chunks` says; `bare URL` is the
least proxy that can be written with httpx2 and Starlette, `sieve URL` is ours. Each prints its port.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import httpx2
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.floor import DELTA_LENGTH, chunk
from streamsieve.backends.application import application
from streamsieve.backends.listener import listening
from streamsieve.backends.upstream import LIMITS, Upstream
from streamsieve.parsers.request import Request as ParsedRequest
from streamsieve.parsers.results import Message, ToolCall
from streamsieve.wire.settings import Settings

SETTINGS = Settings(reasoning_parser="qwen3", tool_parser="hermes")
_USAGE = "/usage"
_PAGE = os.sysconf("SC_PAGE_SIZE")


class DiedOnRequest(ConnectionAbortedError):
    """Leaves the upstream, so that its server cuts the connection."""


def reply(length: int, mark: str = "") -> Message:
    """Reasoning, content and one call, of about so many characters in all; `mark` is in each of them."""
    prose = f"The tide at Brest turns a little after nine, {mark} so the boat leaves early. "
    part = prose * max(1, length // 3 // len(prose)) + "Done."
    assert SETTINGS.format is not None
    return Message(part, part, [ToolCall("call-1", "post_note", json.dumps({"body": part}))])


def deltas(message: Message) -> list[str]:
    """The text of a reply in the pieces that an engine writes."""
    assert SETTINGS.format is not None
    text = SETTINGS.format.render(message, ParsedRequest(parse_calls=True))
    return [text[at : at + DELTA_LENGTH] for at in range(0, len(text), DELTA_LENGTH)]


def events(message: Message) -> list[bytes]:
    """The stream in which it sends them."""
    opening, ending = chunk({"role": "assistant", "content": ""}), chunk({}, "stop")
    chunks = [opening, *(chunk({"content": delta}) for delta in deltas(message)), ending]
    return [b"data: %b\n\n" % data for data in [*chunks, b"[DONE]"]]


def request(bench: Mapping[str, object]) -> bytes:
    """The bytes of a request for a reply, on a connection of its own; for `bench` see `_answer`."""
    tools = [{"type": "function", "function": {"name": "post_note", "parameters": {"type": "object"}}}]
    messages = [{"role": "user", "content": "Write it down."}]
    body = orjson.dumps({"model": "m", "stream": True, "messages": messages, "tools": tools, "bench": bench})
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    )


async def _answer(request: Request) -> StreamingResponse:
    """`bench`: the reply's `length` and `mark`, `delay` (seconds between chunks), `die_after` (so many chunks)."""
    asked = (await request.json())["bench"]

    async def stream() -> AsyncIterator[bytes]:
        for number, event in enumerate(events(reply(asked["length"], asked.get("mark", "")))):
            if number == asked.get("die_after"):
                raise DiedOnRequest
            yield event
            if asked["delay"]:
                await asyncio.sleep(asked["delay"])

    return StreamingResponse(stream(), media_type="text/event-stream")


def upstream() -> ASGIApp:
    return Starlette(routes=[Route("/v1/chat/completions", _answer, methods=["POST"])])


def bare(url: str) -> ASGIApp:
    """Passes a request on and its answer back."""
    client = httpx2.AsyncClient(base_url=url, limits=LIMITS, timeout=600)

    async def pass_on(request: Request) -> StreamingResponse:
        headers = {"content-type": request.headers["content-type"]}
        asked = client.build_request("POST", request.url.path, headers=headers, content=await request.body())
        answer = await client.send(asked, stream=True)
        closing = BackgroundTask(answer.aclose)
        return StreamingResponse(
            answer.aiter_raw(), answer.status_code, media_type=answer.headers["content-type"], background=closing
        )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    return Starlette(routes=[Route("/v1/chat/completions", pass_on, methods=["POST"])], lifespan=lifespan)


def sieve(url: str) -> ASGIApp:
    return application(Upstream(url), SETTINGS)


class _Measured:
    """Answers what the process has used so far; all else is the application's."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == _USAGE:
            usage = {"cpu": time.process_time(), "memory": _memory(), "open": self._open}
            await JSONResponse(usage)(scope, receive, send)
            return
        self._open += scope["type"] == "http"
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= scope["type"] == "http"


def _memory() -> int:
    """Bytes of memory that this process has now (Linux: resident set)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


class Usage(NamedTuple):
    """What a server used: seconds of processor time since its start, bytes of memory now, requests under way."""

    cpu: float
    memory: int
    open: int


@dataclass(frozen=True)
class Served:
    """A server in another process."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def usage(self) -> Usage:
        with urlopen(self.url + _USAGE) as answer:
            return Usage(**json.load(answer))


@contextmanager
def serving(name: str, *url: str) -> Iterator[Served]:
    """One of the servers, in a process of its own, while the block runs."""
    command = [sys.executable, "-m", "benchmarks.servers", name, *url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.match(r"(\d+)\n", process.stdout.readline())
            if found is None:
                raise RuntimeError(f"{name} did not start")
            yield Served(int(found[1]))
        finally:
            process.terminate()


def main(name: str, *url: str) -> None:
    makers: dict[str, Callable[..., ASGIApp]] = {"upstream": upstream, "bare": bare, "sieve": sieve}
    app = makers[name](*url)
    config = uvicorn.Config(_Measured(app), log_level="critical", timeout_graceful_shutdown=1)
    listener = listening("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
