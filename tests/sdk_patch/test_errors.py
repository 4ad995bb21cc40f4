"""What is not a completion reaches the SDK as it does without us, so its errors and retries are the same."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response

from streamsieve.parsers.chain import StageAwaitedError
from streamsieve.sdk_patch import SieveTransport, reasoning, wrap

REFUSALS = {
    "400": lambda _: JSONResponse({"error": {"message": "no <tool_call>", "code": "bad"}}, 400),
    "401": lambda _: JSONResponse({"error": {"message": "who?"}}, 401),
    "404": lambda _: JSONResponse({"error": {"message": "where?"}}, 404),
    "409": lambda _: JSONResponse({"error": {"message": "later"}}, 409),
    "422": lambda _: JSONResponse({"detail": []}, 422),
    "429": lambda _: JSONResponse({"error": {"message": "slow"}}, 429, {"retry-after-ms": "1", "x-limit": "7"}),
    "500": lambda _: HTMLResponse("<h1>broken</h1>", 500),
    "503": lambda _: Response(b"data: {}\n\n", 503, media_type="text/event-stream"),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_is_the_same_error(refusal, streamed, upstream, client, chat, parsers):
    found = []
    for asking in (client, wrap(client, **parsers)):
        upstream.script = [REFUSALS[refusal]]
        with pytest.raises(openai.APIStatusError) as error:
            asking.chat.completions.create(**chat, stream=streamed)
        response = error.value.response
        headers = {name: value for name, value in response.headers.items() if name != "date"}
        found.append((type(error.value), str(error.value), error.value.body, headers, response.content))
    assert found[0] == found[1]


@pytest.mark.parametrize("refusal", ["409", "429", "500", "503"])
def test_retries_go_on(refusal, upstream, client, chat, parsers, monkeypatch):
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.001)
    upstream.script = [REFUSALS[refusal], REFUSALS[refusal]]
    wrapped = wrap(client.with_options(max_retries=2), **parsers)
    message = wrapped.chat.completions.create(**chat).choices[0].message
    assert message.tool_calls[0].function.name == "get_tide"
    assert [request.headers["x-stainless-retry-count"] for request in upstream.asked] == ["0", "1", "2"]
    assert len({request._body for request in upstream.asked}) == 1


def test_an_error_event_in_a_stream_is_an_api_error_after_what_was_sent(upstream, client, chat, events, done, parsers):
    async def failing():
        yield events("<think>Hm")
        yield b'data: {"error": {"message": "out of memory", "code": "oom"}}\n\n'
        yield done

    upstream.script = [lambda _: upstream.streamed(failing())]
    stream = wrap(client, **parsers).chat.completions.create(**chat, stream=True)
    assert reasoning(next(stream).choices[0].delta) == "Hm"
    with pytest.raises(openai.APIError, match="out of memory") as error:
        next(stream)
    assert error.value.body == {"message": "out of memory", "code": "oom"}


async def broken_off(events):
    yield events("<think>Hm")
    raise ConnectionResetError


def test_a_stream_that_breaks_off_is_the_same_error(upstream, client, chat, events, parsers):
    found = []
    for asking in (client, wrap(client, **parsers)):
        upstream.script = [lambda _: upstream.streamed(broken_off(events))]
        with pytest.raises(Exception) as error:  # noqa: PT011 - whatever this SDK makes of it
            list(asking.chat.completions.create(**chat, stream=True))
        found.append((type(error.value), str(error.value), type(error.value.__cause__)))
    assert found[0] == found[1]


async def test_an_asynchronous_one_too(upstream, async_client, chat, events, parsers):
    found = []
    for asking in (async_client, wrap(async_client, **parsers)):
        upstream.script = [lambda _: upstream.streamed(broken_off(events))]
        with pytest.raises(Exception) as error:  # noqa: PT011, PT012 - whatever this SDK makes of it
            async for _ in await asking.chat.completions.create(**chat, stream=True):
                continue
        found.append((type(error.value), str(error.value), type(error.value.__cause__)))
    assert found[0] == found[1]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_timeout_is_the_same_error(streamed, upstream, client, chat, events, parsers):
    async def stalled():
        yield events("<think>Hm") if streamed else b'{"choices": '
        await asyncio.sleep(60)

    def answer(request):
        response = upstream.streamed(stalled())
        response.headers["content-type"] = "text/event-stream" if streamed else "application/json"
        return response

    found = []
    for asking in (client, wrap(client, **parsers)):
        upstream.script = [answer]
        with pytest.raises(Exception) as error:  # noqa: PT011, PT012 - openai 2 lets the timeout of a stream out as it is
            answered = asking.with_options(timeout=0.3).chat.completions.create(**chat, stream=streamed)
            list(answered)
        found.append(type(error.value))
    assert found[0] is found[1]


def test_the_timeout_reaches_the_inner_transport(http, chat, parsers):
    asked = []

    def answer(request):
        asked.append(request)
        return http.Response(200, json={"choices": []})

    transport = SieveTransport(http.MockTransport(answer), **parsers)
    client = openai.OpenAI(api_key="k", http_client=http.Client(transport=transport))
    client.with_options(timeout=7).chat.completions.create(**chat)
    assert asked[0].extensions["timeout"] == {"connect": 7, "read": 7, "write": 7, "pool": 7}


def test_what_the_inner_transport_raises_passes(http, chat, parsers):
    def refuse(request):
        raise http.ConnectError("no route")

    transport = SieveTransport(http.MockTransport(refuse), **parsers)
    client = openai.OpenAI(api_key="k", max_retries=0, http_client=http.Client(transport=transport))
    with pytest.raises(openai.APIConnectionError) as error:
        client.chat.completions.create(**chat)
    assert type(error.value.__cause__) is http.ConnectError


def test_other_endpoints_pass_untouched(upstream, client, chat, parsers):
    """The same bytes and headers, and the request as the SDK wrote it."""
    found = []
    for asking in (client, wrap(client, **parsers)):
        upstream.script = [
            lambda _: JSONResponse({"data": [{"id": "<think>m</think>", "object": "model"}], "object": "list"}),
            lambda _: JSONResponse({"choices": [{"message": {"content": "<tool_call>"}}]}, headers={"etag": "e"}),
        ]
        answers = [
            asking.models.with_raw_response.list(),
            asking.embeddings.with_raw_response.create(model="m", input="x", encoding_format="float"),
        ]
        found.append([(answer.text, dict(answer.headers)) for answer in answers])
        found[-1].append([dict(request.headers) for request in upstream.asked[-2:]])
    assert found[0] == found[1]


def test_a_stage_that_awaits_is_a_clear_error_under_the_synchronous_client(upstream, client, chat, parsers):
    async def stage(events):
        async for event in events:
            await asyncio.sleep(0)
            yield event

    upstream.script = [upstream.forever]
    with pytest.raises(StageAwaitedError, match="synchronous"):
        list(wrap(client, stages=[stage], **parsers).chat.completions.create(**chat, stream=True))
    assert upstream.one_ended.wait(1)


async def test_a_stage_may_await_under_the_asynchronous_client(async_client, chat, parsers):
    async def stage(events):
        async for event in events:
            await asyncio.sleep(0)
            yield event

    wrapped = wrap(async_client, stages=[stage], **parsers)
    chunks = [chunk async for chunk in await wrapped.chat.completions.create(**chat, stream=True)]
    thought = "".join(reasoning(chunk.choices[0].delta) or "" for chunk in chunks if chunk.choices)
    assert thought == "The tide — I look."
    message = (await wrapped.chat.completions.create(**chat)).choices[0].message
    assert json.loads(message.tool_calls[0].function.arguments) == {"port": "Bodø", "days": 2}


def told_of(records):
    return [(record.mode, record.status, record.outcome) for record in records]


def test_observers_are_told_of_every_exchange(upstream, client, chat, events, done, parsers):
    """Of errors, of connections that break, and of clients that leave early too."""

    async def failing():
        yield events("<think>Hm")
        raise RuntimeError("the engine died")

    async def whole():
        yield events("Hm.</think>Hi") + events(finish="stop") + done

    async def slow():
        yield events("Hm.</think>Hi")
        await asyncio.sleep(1)
        yield events(finish="stop") + done

    records = []
    wrapped = wrap(client, observers=[records.append], **parsers)
    upstream.script = [REFUSALS["429"]]
    with pytest.raises(openai.RateLimitError):
        wrapped.chat.completions.create(**chat)
    upstream.script = [lambda _: upstream.streamed(failing())]
    with pytest.raises(Exception, match=r"peer|incomplete|Connection"):
        list(wrapped.chat.completions.create(**chat, stream=True))
    upstream.script = [lambda _: upstream.streamed(whole()), lambda _: upstream.streamed(slow())]
    list(wrapped.chat.completions.create(**chat, stream=True))
    with wrapped.chat.completions.create(**chat, stream=True) as stream:
        next(stream)
    assert told_of(records) == [
        ("pass", 429, "unread"),
        ("stream", 200, "broken_off"),
        ("stream", 200, "complete"),
        ("stream", 200, "abandoned"),
    ]


async def test_asynchronous_clients_tell_them_too(upstream, async_client, chat, events, parsers):
    async def failing():
        yield events("<think>Hm")
        raise RuntimeError("the engine died")

    records = []
    wrapped = wrap(async_client, observers=[records.append], **parsers)
    upstream.script = [REFUSALS["429"], lambda _: upstream.streamed(failing())]
    with pytest.raises(openai.RateLimitError):
        await wrapped.chat.completions.create(**chat)
    with pytest.raises(Exception, match=r"peer|incomplete|Connection"):
        async for _ in await wrapped.chat.completions.create(**chat, stream=True):
            pass
    assert told_of(records) == [("pass", 429, "unread"), ("stream", 200, "broken_off")]
