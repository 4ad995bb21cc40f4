"""What the app or the server raises passes through, and the exchange is freed however the call ends."""

from __future__ import annotations

import asyncio

import pytest
import trio
from starlette.middleware.errors import ServerErrorMiddleware

from streamsieve.middleware import SieveMiddleware

EVENTS = [(b"content-type", b"text/event-stream")]
SCOPE = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}


class BrokenEngineError(Exception):
    pass


@pytest.fixture
def watched(parsers):
    """Settings with a stage that tells when it began and when it was freed."""
    log = []

    async def stage(events):
        log.append("began")
        try:
            async for event in events:
                yield event
        finally:
            log.append("freed")

    return {**parsers, "stages": [stage]}, log


@pytest.fixture
def receive(chat):
    async def receive():
        return {"type": "http.request", "body": chat(), "more_body": False}

    return receive


async def test_an_app_that_raises_in_its_stream_is_heard_and_the_stages_are_freed(watched, receive, chunk):
    options, log = watched
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": chunk("<think>a"), "more_body": True})
        raise BrokenEngineError

    async def send(message):
        sent.append(message)

    with pytest.raises(BrokenEngineError):
        await SieveMiddleware(app, **options)(SCOPE, receive, send)
    assert b'"a"' in sent[1]["body"]
    assert b'"code":"reply_broke_off"' in sent[2]["body"]
    assert sent[2]["more_body"]
    assert log == ["began", "freed"]


@pytest.mark.parametrize(
    ("bodies", "told"),
    [
        (["a <"], ["a", " <", "reply_broke_off"]),
        (["a", b'data: {"id": "c", "choi'], ["a", "reply_broke_off"]),
        (["a", b"data: [DONE]\n\n"], ["a", "[DONE]"]),
    ],
    ids=["held text comes first", "half an event is dropped", "a whole reply stays whole"],
)
async def test_what_a_client_hears_of_a_reply_that_breaks_off(bodies, told, parsers, call, chat, chunk):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        for body in ("</think>", *bodies):
            piece = chunk(body) if isinstance(body, str) else body
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        raise BrokenEngineError

    async def failing(scope, receive, send):
        with pytest.raises(BrokenEngineError):
            await SieveMiddleware(app, **parsers)(scope, receive, send)

    client = await call(failing, chat())
    assert [heard(event) for event in client.events] == told
    assert client.sent[-1]["more_body"]  # so the server closes the connection, and nobody takes it for the end


def heard(event):
    if event == "[DONE]" or "error" in event:
        return event if event == "[DONE]" else event["error"]["code"]
    return event["choices"][0]["delta"].get("content")


@pytest.mark.parametrize("started", [False, True])
async def test_an_app_that_raises_before_a_json_answer_is_out_gets_the_error_page(started, parsers, receive):
    """The start of a JSON answer is withheld, so whoever stands outside can still answer 500."""
    sent = []

    async def app(scope, receive, send):
        if started:
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"choices": [', "more_body": True})
        raise BrokenEngineError

    async def send(message):
        sent.append(message)

    with pytest.raises(BrokenEngineError):
        await ServerErrorMiddleware(SieveMiddleware(app, **parsers))(SCOPE, receive, send)
    assert sent[0]["status"] == 500


async def test_a_server_that_raises_in_send_is_heard_by_the_app(watched, receive, chunk):
    """From ASGI 2.4 on, a disconnect is an OSError out of `send`."""
    options, log = watched
    heard = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        try:
            await send({"type": "http.response.body", "body": chunk("<think>a"), "more_body": True})
        except OSError as error:
            heard.append(error)
            raise

    async def send(message):
        if message["type"] == "http.response.body":
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await SieveMiddleware(app, **options)(SCOPE, receive, send)
    assert len(heard) == 1
    assert log == ["began", "freed"]


async def test_what_a_stage_raises_reaches_the_app(parsers, receive, chunk):
    async def stage(events):
        async for event in events:
            raise BrokenEngineError
            yield event

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        with pytest.raises(BrokenEngineError):
            await send({"type": "http.response.body", "body": chunk("<think>a"), "more_body": True})
        raise BrokenEngineError

    async def send(message): ...

    with pytest.raises(BrokenEngineError):
        await SieveMiddleware(app, stages=[stage], **parsers)(SCOPE, receive, send)


async def test_a_cancelled_call_frees_its_stages_on_asyncio(watched, receive, chunk):
    options, log = watched
    streaming = asyncio.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": chunk("<think>a"), "more_body": True})
        streaming.set()
        await asyncio.Event().wait()

    async def send(message): ...

    task = asyncio.create_task(SieveMiddleware(app, **options)(dict(SCOPE), receive, send))
    await asyncio.wait_for(streaming.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["began", "freed"]


def test_a_cancelled_call_frees_its_stages_on_trio(watched, receive, chunk):
    options, log = watched

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": chunk("<think>a"), "more_body": True})
        streaming.set()
        await trio.sleep_forever()

    async def send(message): ...

    async def main():
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(SieveMiddleware(app, **options), dict(SCOPE), receive, send)
                await streaming.wait()
                nursery.cancel_scope.cancel()

    streaming = trio.Event()
    trio.run(main)
    assert log == ["began", "freed"]


async def test_a_background_task_after_the_answer_does_not_keep_the_stages(watched, receive, chunk):
    options, log = watched
    at_the_end = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": chunk("<think>a") + b"data: [DONE]\n\n"})
        at_the_end.extend(log)

    async def send(message): ...

    await SieveMiddleware(app, **options)(SCOPE, receive, send)
    assert at_the_end == ["began", "freed"]


async def test_each_call_starts_anew(call, engine, chat, chunk, parsers):
    """Two requests at once on one middleware, one of which broke off inside a tag."""
    sieve = SieveMiddleware(engine(bodies=[chunk("<thi"), b"data: [DONE]\n\n"]), **parsers)
    await call(sieve, chat())
    sieve.app = engine(bodies=[chunk("nk>Hm.</think>A"), chunk(finish="stop"), b"data: [DONE]\n\n"])
    first, second = await asyncio.gather(call(sieve, chat()), call(sieve, chat()))
    assert first.body == second.body
    assert b"nk>Hm." in first.body


@pytest.mark.parametrize("kind", [b"text/event-stream", b"application/json"])
async def test_what_an_app_sends_after_its_last_message_is_the_servers_to_judge(kind, call, chat, chunk, parsers):
    late = {"type": "http.response.body", "body": chunk("<think>late"), "more_body": False}

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": b"{}"})
        await send(late)

    client = await call(SieveMiddleware(app, **parsers), chat())
    assert client.sent[-1] == late
