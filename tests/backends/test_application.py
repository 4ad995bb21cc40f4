"""The served application: the key in front, the middleware, the backend's lifespan."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import anyio
import httpx2
import openai
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from streamsieve.backends.application import application
from streamsieve.backends.replay import replay
from streamsieve.backends.upstream import Upstream
from streamsieve.wire.settings import Settings

Serve = Callable[[ASGIApp], str]
HERMES = Settings(tool_parser="hermes", reasoning_parser="qwen3")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("authorization", "Bearer wrong")], 401),
        ([("authorization", "Bearer secre")], 401),
        ([("authorization", "Bearer secret2")], 401),
        ([("authorization", "Basic secret")], 401),
        ([("authorization", "secret")], 401),
        ([("authorization", "Bearer secret"), ("authorization", "Bearer secret")], 401),
        ([("authorization", "Bearer secret")], 200),
        ([("authorization", "bearer  secret")], 200),
    ],
)
async def test_the_key_is_asked_for(headers: list[tuple[str, str]], status: int) -> None:
    app = application(replay(), Settings(), api_key="secret")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://x") as client:
        answer = await client.get("/v1/models", headers=headers)
        assert answer.status_code == status
        if status == 401:
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["error"]["code"] == "invalid_api_key"
        assert (await client.get("/health")).status_code == 200


def test_the_client_library_sees_a_wrong_key_as_such(serve: Serve) -> None:
    url = serve(application(replay(), Settings(), api_key="secret"))
    client = openai.OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0)
    with client, pytest.raises(openai.AuthenticationError):
        client.models.list()


def test_our_key_does_not_reach_the_upstream(serve: Serve, witness: Any) -> None:
    url = serve(application(Upstream(serve(witness)), Settings(), api_key="secret"))
    assert httpx2.get(url, headers={"authorization": "Bearer secret"}).status_code == 200
    assert [name for name, _ in witness.headers if name == b"authorization"] == []


@pytest.mark.parametrize("behind_the_proxy", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_trays_come_out(serve: Serve, behind_the_proxy: bool, stream: bool) -> None:
    backend: ASGIApp = Upstream(serve(replay())) if behind_the_proxy else replay()
    url = serve(application(backend, HERMES))
    tools: Any = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]
    messages: Any = [{"role": "user", "content": "Tides?"}]
    with openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
        if stream:
            with client.chat.completions.stream(model="hermes", messages=messages, tools=tools) as events:
                choice: Any = events.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(model="hermes", messages=messages, tools=tools).choices[0]
    assert choice.message.reasoning == "Tides: I should ask for the next two days."
    assert choice.message.content == "I'll look that up."
    (call,) = choice.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("get_tide", '{"port": "Brest", "days": 2}')
    assert choice.finish_reason == "tool_calls"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_ends_the_upstreams_request_within_a_second(serve: Serve, stream: bool) -> None:
    """Through the key, the middleware and the gateway, in a stream and before a whole answer."""
    started, left = threading.Event(), threading.Event()

    async def backend(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b": ping\n\n", "more_body": True})
        started.set()
        messages = [await receive(), await receive()]
        assert [message["type"] for message in messages] == ["http.request", "http.disconnect"]
        left.set()

    url = httpx2.URL(serve(application(Upstream(serve(backend)), HERMES, api_key="k")))
    body = json.dumps({"model": "hermes", "messages": [{"role": "user"}], "stream": stream}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\ncontent-length: {len(body)}"
    client = await anyio.connect_tcp(url.host, url.port or 80)
    await client.send(head.encode() + b"\r\n\r\n" + body)
    assert await anyio.to_thread.run_sync(started.wait, 5)
    await client.aclose()
    assert await anyio.to_thread.run_sync(left.wait, 1)


@pytest.mark.parametrize(
    ("origins", "allowed"),
    [
        ((), None),
        (("https://chat.example",), "https://chat.example"),
        (("https://other.example",), None),
        (("*",), "*"),
    ],
)
async def test_pages_of_other_origins_ask_only_where_they_may(origins: tuple[str, ...], allowed: str | None) -> None:
    app = application(replay(), Settings(), api_key="secret", cors_origins=origins)
    asking = {"origin": "https://chat.example", "access-control-request-method": "POST"}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://x") as client:
        preflight = await client.options("/v1/chat/completions", headers=asking)
        assert preflight.headers.get("access-control-allow-origin") == allowed
        refused = await client.get("/v1/models", headers=asking)
        assert (refused.status_code, refused.headers.get("access-control-allow-origin")) == (401, allowed)
