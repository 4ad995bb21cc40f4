"""The request body: read once ahead of the app, given to it whole, and then out of the way."""

from __future__ import annotations

import pytest

from streamsieve.middleware import SieveMiddleware
from streamsieve.middleware.request import moved, narrowed
from streamsieve.wire.settings import Settings


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_the_app_gets_the_body_and_then_the_servers_own_receive(size, call, engine, chat, chunk, raw, parsers):
    body = chat(messages=[{"role": "user", "content": "Größe 😀 " * 50}])
    app = engine(bodies=[chunk(raw), b"data: [DONE]\n\n"])
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    client = await call(SieveMiddleware(app, **parsers), pieces, headers=[(b"content-length", b"%d" % len(body))])
    assert b"".join(message["body"] for message in app.received) == body
    assert app.received[-1]["more_body"] is False
    assert dict(app.scopes[0]["headers"])[b"content-length"] == b"%d" % len(body)
    assert b"<think>" not in client.body


async def test_after_the_body_each_receive_is_the_servers(call, chat, parsers):
    got = []

    async def app(scope, receive, send):
        got.extend([await receive(), await receive(), await receive()])

    await call(SieveMiddleware(app, **parsers), chat())
    assert [message["type"] for message in got] == ["http.request", "http.disconnect", "http.disconnect"]


async def test_nothing_is_read_beyond_the_body(chat, parsers):
    """A receive that nobody asked for would take the disconnect away from the app."""
    left = []
    incoming = [{"type": "http.request", "body": chat(), "more_body": False}, {"type": "http.disconnect"}]

    async def app(scope, receive, send):
        left.append(len(incoming))

    async def receive():
        return incoming.pop(0)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    await SieveMiddleware(app, **parsers)(scope, receive, None)
    assert left == [1]


async def test_a_client_that_leaves_in_its_body_leaves_the_app_to_see_it(chat, parsers):
    got = []

    async def app(scope, receive, send):
        got.extend([await receive(), await receive(), await receive()])

    incoming = [
        {"type": "http.request", "body": chat()[:10], "more_body": True},
        {"type": "http.disconnect"},
        {"type": "http.disconnect"},
    ]

    async def receive():
        return incoming.pop(0)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    await SieveMiddleware(app, **parsers)(scope, receive, None)
    assert [message["type"] for message in got] == ["http.request", "http.disconnect", "http.disconnect"]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_passes_untouched(announced, call, engine, chat, chunk, raw, parsers):
    body = chat(messages=[{"role": "user", "content": "x" * 5000}])
    app = engine(bodies=[chunk(raw), b"data: [DONE]\n\n"])
    sieve = SieveMiddleware(app, settings=Settings(max_body=2000, **parsers))
    pieces = [body[start : start + 500] for start in range(0, len(body), 500)]
    length = [(b"content-length", b"%d" % len(body))] if announced else []
    client = await call(sieve, pieces, headers=[*length, (b"accept-encoding", b"gzip")])
    assert [message["body"] for message in app.received] == pieces
    assert app.scopes[0] is client.scope
    assert client.body == chunk(raw) + b"data: [DONE]\n\n"


async def test_a_body_over_the_limit_is_not_gathered(chat, parsers):
    """What is held of it is the limit and one message, not the body."""
    unread = []

    async def app(scope, receive, send):
        unread.append(len(incoming))

    incoming = [{"type": "http.request", "body": b"x" * 100, "more_body": True} for _ in range(100)]

    async def receive():
        return incoming.pop(0)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    await SieveMiddleware(app, settings=Settings(max_body=1000, **parsers))(scope, receive, None)
    assert unread == [89]


@pytest.mark.parametrize("body", [b"", b"not JSON", b"[1, 2]", b'"text"', b'{"a": ', b"\xff\xfe"], ids=repr)
async def test_a_body_that_is_no_json_object_passes_untouched(body, call, engine, chunk, raw, parsers):
    headers = [(b"content-type", b"text/event-stream"), (b"content-length", b"1"), (b"etag", b"e")]
    app = engine(headers=headers, bodies=[chunk(raw), b"data: [DONE]\n\n"])
    client = await call(SieveMiddleware(app, **parsers), body)
    assert app.received[0]["body"] == body
    assert client.body == chunk(raw) + b"data: [DONE]\n\n"
    assert client.start["headers"] == headers


async def test_an_app_that_never_reads_its_body_is_served_too(call, chat, chunk, raw, parsers):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": chunk(raw) + b"data: [DONE]\n\n"})

    client = await call(SieveMiddleware(app, **parsers), chat())
    assert b"get_tide" in client.body
    assert b"<tool_call>" not in client.body


def test_a_content_length_is_that_of_the_body_the_app_gets():
    """An exchange may change the request."""
    scope = {"headers": [(b"Content-Length", b"3"), (b"accept-encoding", b"gzip")], "path": "/"}
    assert narrowed(scope, 12345)["headers"] == [(b"content-length", b"12345")]


@pytest.mark.parametrize(
    ("root", "path", "asked"),
    [("", "/v1/responses", "/v1/chat/completions"), ("/models", "/models/v1/responses", "/models/v1/chat/completions")],
)
def test_a_request_may_be_asked_elsewhere_below_the_same_root(root, path, asked):
    scope = {"root_path": root, "path": path, "raw_path": path.encode()}
    assert moved(scope, "/v1/chat/completions") == {"path": asked, "raw_path": asked.encode()}


async def test_a_prompt_that_the_app_has_rendered_says_where_the_reply_starts(call, chat, chunk):
    async def app(scope, receive, send):
        scope["extensions"]["streamsieve.prompt"]["tail"] = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": chunk("No thinking.") + b"data: [DONE]\n\n"})

    client = await call(SieveMiddleware(app, reasoning_parser="qwen3"), chat())
    assert b'"content":"No thinking."' in client.body.replace(b'": "', b'":"')
