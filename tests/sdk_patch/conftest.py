"""A raw engine on loopback, and the SDK's clients before it. Runs under openai 3 and openai 2 alike."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import openai
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from streamsieve.backends.loopback import loopback

RAW = (
    "<think>\nThe tide — I look.\n</think>\n\nOne moment. 😀\n"
    '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Bodø", "days": 2}}\n</tool_call>'
)
TOOL = {
    "type": "function",
    "function": {
        "name": "get_tide",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"port": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["port", "days"],
            "additionalProperties": False,
        },
    },
}
DONE = b"data: [DONE]\n\n"
EVENTS = "text/event-stream"
Answer = Callable[[Request], Response | Awaitable[Response]]


def chunk(text: str | None = None, *, finish: str | None = None, **more: object) -> bytes:
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


def completion(text: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1764000000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
    }


@dataclass
class Upstream:
    """An engine without parsers. `script` answers the next requests, then every request gets `raw`."""

    raw: str = RAW
    script: list[Answer] = field(default_factory=list)
    asked: list[Request] = field(default_factory=list)
    connections: set[tuple[str, int]] = field(default_factory=set)
    linger: float = 0  # seconds between [DONE] and the end of the body
    ended: int = 0
    one_ended: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        await request.body()
        self.asked.append(request)
        self.connections.add(scope["client"])
        made = self.script.pop(0)(request) if self.script else self.answer(request)
        await (made if isinstance(made, Response) else await made)(scope, receive, send)

    def answer(self, request: Request) -> Response:
        if json.loads(request._body).get("stream"):
            return self.streamed(self.reply())
        return JSONResponse(completion(self.raw))

    def streamed(self, events: AsyncIterator[bytes], **headers: str) -> Response:
        """A stream whose end, or whose client's going away, is counted."""

        async def watched() -> AsyncIterator[bytes]:
            try:
                async for event in events:
                    yield event
            finally:
                self.ended += 1
                self.one_ended.set()

        return StreamingResponse(watched(), media_type=EVENTS, headers=headers)

    async def reply(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.raw), 5):
            yield chunk(self.raw[start : start + 5])
        yield chunk(finish="stop")
        yield chunk(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8})
        yield DONE
        await asyncio.sleep(self.linger)

    async def forever(self, request: Request) -> Response:
        """Thinks until the client goes away."""

        async def thoughts() -> AsyncIterator[bytes]:
            yield chunk("<think>")
            while True:
                yield chunk("so ")
                await asyncio.sleep(0.01)

        return self.streamed(thoughts())


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    found = Upstream()
    with loopback(found) as url:
        found.url = f"{url}/v1"
        yield found


@pytest.fixture
def http() -> ModuleType:
    """The HTTP library that the installed SDK speaks through."""
    return importlib.import_module("httpx2" if int(openai.__version__.partition(".")[0]) >= 3 else "httpx")


@pytest.fixture
def parsers() -> dict[str, str]:
    return {"reasoning_parser": "qwen3", "tool_parser": "hermes"}


@pytest.fixture
def chat() -> dict[str, Any]:
    """The arguments of a chat completion request."""
    return {"model": "m", "messages": [{"role": "user", "content": "Tide?"}], "tools": [TOOL]}


@pytest.fixture
def client(upstream) -> Iterator[openai.OpenAI]:
    """The plain client, without retries."""
    with openai.OpenAI(base_url=upstream.url, api_key="k", max_retries=0) as found:
        yield found


@pytest.fixture
async def async_client(upstream) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=upstream.url, api_key="k", max_retries=0) as found:
        yield found


@pytest.fixture
def events() -> Callable[..., bytes]:
    """One server-sent event as the engine writes it."""
    return chunk


@pytest.fixture
def done() -> bytes:
    return DONE


@pytest.fixture
def body() -> Callable[[str], dict[str, Any]]:
    """A completion that is not streamed, raw text in its content."""
    return completion
