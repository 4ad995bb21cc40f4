"""A long stream costs no memory of its own, and a JSON answer what it is long, a few times."""

from __future__ import annotations

import tracemalloc

import pytest

from streamsieve.middleware import SieveMiddleware

MIB = 1024 * 1024


@pytest.fixture
def peak(chat):
    """The most that is allocated at once while an app sends its bodies through the middleware, in bytes."""

    async def measured(sieve_of, kind, bodies):
        sent = 0

        async def app(scope, receive, send):
            headers = [(b"content-type", kind)]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for body in bodies:
                await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        async def receive():
            return {"type": "http.request", "body": chat(), "more_body": False}

        async def send(message):
            nonlocal sent
            sent += len(message.get("body", b""))

        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
        sieve = sieve_of(app)
        tracemalloc.start()
        try:
            await sieve(scope, receive, send)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        return most, sent

    return measured


async def test_a_streamed_reply_of_ten_megabytes_needs_two_at_most(peak, chunk, parsers):
    delta = chunk("word and " * 400)
    bodies = [chunk("<think>Hm.</think>"), *[delta] * (10 * MIB // len(delta))]
    most, sent = await peak(lambda app: SieveMiddleware(app, **parsers), b"text/event-stream", bodies)
    assert sent > 9 * MIB
    assert most < 2 * MIB


async def test_a_json_answer_over_the_limit_is_not_held(peak, parsers):
    bodies = [b"x" * 65536] * (10 * MIB // 65536)
    most, sent = await peak(lambda app: SieveMiddleware(app, max_body=MIB, **parsers), b"application/json", bodies)
    assert sent == 10 * MIB
    assert most < 3 * MIB
