"""The headers describe the bytes that are sent; a stream is not held back by anybody on its way."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from starlette.middleware.gzip import GZipMiddleware

from streamsieve.middleware import SieveMiddleware
from streamsieve.wire.settings import Settings

JSON = (b"content-type", b"application/json; charset=utf-8")
EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")
DONE = b"data: [DONE]\n\n"
OF_THE_OLD_BODY = [
    (b"content-length", b"1"),
    (b"ETag", b'"1"'),
    (b"Digest", b"sha-256=1"),
    (b"content-md5", b"1"),
    (b"repr-digest", b"sha-256=:1:"),
]


@pytest.mark.parametrize("pieces", [1, 3, 50])
@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "both"])
async def test_a_json_answer_has_the_length_of_its_new_body(
    pieces, field, call, engine, chat, completion, raw, parsers
):
    """The new body is shorter than the old one with one field, and longer with both."""
    old = completion("<think>" + " " * 200 + "so " * 400 + "</think>\n" + raw.partition("</think>")[2])
    size = len(old) // pieces + 1
    body = [old[start : start + size] for start in range(0, len(old), size)]
    app = engine(headers=[JSON, *OF_THE_OLD_BODY, (b"x-request-id", b"7")], bodies=body)
    client = await call(SieveMiddleware(app, reasoning_field=field, **parsers), chat(stream=False))
    assert [message["type"] for message in client.sent] == ["http.response.start", "http.response.body"]
    assert client.start["headers"] == [
        JSON,
        (b"x-request-id", b"7"),
        (b"content-length", str(len(client.body)).encode()),
    ]
    message = json.loads(client.body)["choices"][0]["message"]
    assert message["content"] == "One moment. 😀"
    assert message["tool_calls"][0]["function"]["name"] == "get_tide"
    assert {name for name in message if name.startswith("reasoning")} == (
        {"reasoning", "reasoning_content"} if field == "both" else {field}
    )
    assert (len(client.body) > len(old)) == (field == "both")


async def test_the_start_of_a_json_answer_waits_for_its_end(chat, completion, raw, parsers):
    sent, order = [], []
    old = completion(raw)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [JSON]})
        for body, more in ((old[:100], True), (b"", True), (old[100:], True), (b"", False)):
            order.append(len(sent))
            await send({"type": "http.response.body", "body": body, "more_body": more})

    async def receive():
        return {"type": "http.request", "body": chat(stream=False), "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    await SieveMiddleware(app, **parsers)(scope, receive, send)
    assert order == [0, 0, 0, 0]
    assert len(sent) == 2


async def test_a_json_answer_over_the_limit_goes_out_as_it_came(call, engine, chat, completion, raw, parsers):
    old = completion(raw + " " * 5000)
    headers = [JSON, (b"content-length", str(len(old)).encode()), (b"etag", b"e")]
    app = engine(headers=headers, bodies=[old[:1500], old[1500:3000], old[3000:]])
    client = await call(SieveMiddleware(app, settings=Settings(max_body=2000, **parsers)), chat(stream=False))
    assert client.start["headers"] == headers
    assert [message.get("body") for message in client.sent[1:]] == [old[:3000], old[3000:]]


async def test_a_stream_has_no_length_and_nothing_that_describes_the_old_one(call, engine, chat, chunk, raw, parsers):
    app = engine(headers=[EVENTS, *OF_THE_OLD_BODY, (b"x-request-id", b"7")], bodies=[chunk(raw), DONE])
    client = await call(SieveMiddleware(app, **parsers), chat())
    assert client.start["headers"] == [
        EVENTS,
        (b"x-request-id", b"7"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]


async def test_what_the_app_says_about_caching_stays(call, engine, chat, chunk, raw, parsers):
    headers = [EVENTS, (b"Cache-Control", b"no-cache"), (b"X-Accel-Buffering", b"yes")]
    client = await call(SieveMiddleware(engine(headers=headers, bodies=[DONE]), **parsers), chat())
    assert client.headers == {name.lower(): value for name, value in headers}


async def test_a_json_answer_gets_no_headers_of_a_stream(call, engine, chat, completion, raw, parsers):
    app = engine(headers=[JSON], bodies=[completion(raw)])
    client = await call(SieveMiddleware(app, **parsers), chat(stream=False))
    assert set(client.headers) == {b"content-type", b"content-length"}


async def test_compression_outside_lets_each_event_out_before_the_next_is_made(chat, chunk, parsers):
    """GZipMiddleware(SieveMiddleware(app)): the stream is not compressed, so nobody gathers events."""
    first_is_out = asyncio.Event()
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
        await send({"type": "http.response.body", "body": chunk("<think>One"), "more_body": True})
        await asyncio.wait_for(first_is_out.wait(), 10)
        await send({"type": "http.response.body", "body": chunk(" two</think>") + DONE})

    async def receive():
        return {"type": "http.request", "body": chat(), "more_body": False}

    async def send(message):
        sent.append(message)
        if b"One" in message.get("body", b""):
            first_is_out.set()

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [(b"accept-encoding", b"gzip")],
    }
    await GZipMiddleware(SieveMiddleware(app, **parsers))(scope, receive, send)
    assert b"content-encoding" not in dict(sent[0]["headers"])
    assert b" two" in sent[-1]["body"]


@pytest.mark.parametrize("streamed", [True, False])
async def test_compression_outside_compresses_the_new_body(
    streamed, call, engine, chat, chunk, completion, raw, parsers
):
    app = (
        engine(headers=[EVENTS], bodies=[chunk(raw), DONE])
        if streamed
        else engine(headers=[JSON], bodies=[completion(raw)])
    )
    stack = GZipMiddleware(SieveMiddleware(app, **parsers), minimum_size=10)
    client = await call(stack, chat(stream=streamed), headers=[(b"accept-encoding", b"gzip")])
    body = client.body if streamed else gzip.decompress(client.body)
    assert b"get_tide" in body
    assert b"<tool_call>" not in body
    assert client.headers.get(b"content-length", b"") == (b"" if streamed else str(len(client.body)).encode())


@pytest.mark.parametrize("streamed", [True, False])
async def test_compression_inside_is_not_asked_for(streamed, call, engine, chat, chunk, completion, raw, parsers):
    """SieveMiddleware(GZipMiddleware(app)): the inner app does not see that the client takes gzip."""
    app = (
        engine(headers=[EVENTS], bodies=[chunk(raw), DONE])
        if streamed
        else engine(headers=[JSON], bodies=[completion(raw)])
    )
    stack = SieveMiddleware(GZipMiddleware(app, minimum_size=10, exclude_content_types=()), **parsers)
    client = await call(stack, chat(stream=streamed), headers=[(b"accept-encoding", b"gzip")])
    assert b"content-encoding" not in client.headers
    assert b"get_tide" in client.body
    assert b"<tool_call>" not in client.body


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_encoded_body_passes_unchanged(streamed, call, engine, chat, chunk, completion, raw, parsers):
    """From an app that compresses without being asked to."""
    old = gzip.compress(chunk(raw) + DONE if streamed else completion(raw))
    headers = [EVENTS if streamed else JSON, (b"content-encoding", b"gzip"), (b"etag", b"e")]
    app = engine(headers=headers, bodies=[old[:10], old[10:]])
    client = await call(SieveMiddleware(app, **parsers), chat(stream=streamed))
    assert client.body == old
    assert client.start["headers"] == headers


@pytest.mark.parametrize("kind", [bytearray, memoryview])
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_body_need_not_be_bytes(streamed, kind, call, engine, chat, chunk, completion, raw, parsers):
    """Starlette sends on what the app's iterator gives, a `memoryview` too."""
    body = kind(chunk(raw) + DONE if streamed else completion(raw))
    app = engine(headers=[EVENTS if streamed else JSON], bodies=[body[:50], body[50:]])
    client = await call(SieveMiddleware(app, **parsers), chat(stream=streamed))
    assert b"get_tide" in client.body
    assert b"<tool_call>" not in client.body
