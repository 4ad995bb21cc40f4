"""What of an exchange is rewritten, and what the shell may rely on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streamsieve.parsers.chain import StageAwaitedError, run
from streamsieve.parsers.events import CallStart, Content, Event
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

REQUEST = b'{"messages": [], "tools": []}'
EVENT_STREAM = (b"content-type", b"text/event-stream")
JSON = (b"content-type", b"application/json")
LENGTH = (b"content-length", b"7")
OTHER = (b"x-other", b"1")
OLD_BODY = [(name, b"x") for name in (b"etag", b"digest", b"content-md5", b"content-digest", b"repr-digest")]
IDENTITY = (b"content-encoding", b"identity")

# name, request body, status, headers, mode, headers out (None: unchanged)
STARTS: list[tuple[str, bytes, int, list[tuple[bytes, bytes]], str, list[tuple[bytes, bytes]] | None]] = [
    ("a stream", REQUEST, 200, [EVENT_STREAM, OTHER, OTHER], "stream", None),
    ("a stream with a charset", REQUEST, 200, [(b"content-type", b"Text/Event-Stream; charset=utf-8")], "stream", None),
    ("JSON", REQUEST, 200, [JSON, OTHER], "whole", None),
    ("what described the old body is gone", REQUEST, 200, [EVENT_STREAM, LENGTH, *OLD_BODY], "stream", [EVENT_STREAM]),
    ("of JSON as well", REQUEST, 200, [LENGTH, *OLD_BODY, JSON], "whole", [JSON]),
    ("identity is no coding", REQUEST, 200, [EVENT_STREAM, IDENTITY], "stream", None),
    ("compressed", REQUEST, 200, [EVENT_STREAM, LENGTH, (b"content-encoding", b"gzip")], "pass", None),
    ("twice compressed", REQUEST, 200, [JSON, IDENTITY, (b"content-encoding", b"gzip")], "pass", None),
    ("in the other order", REQUEST, 200, [JSON, (b"content-encoding", b"gzip"), IDENTITY], "pass", None),
    ("in one header", REQUEST, 200, [JSON, (b"content-encoding", b"identity, br")], "pass", None),
    ("an error", REQUEST, 400, [JSON, LENGTH, *OLD_BODY], "pass", None),
    ("another success", REQUEST, 202, [JSON, LENGTH], "pass", None),
    ("no content type", REQUEST, 200, [LENGTH], "pass", None),
    ("html", REQUEST, 200, [(b"content-type", b"text/html")], "pass", None),
    ("JSON of another kind", REQUEST, 200, [(b"content-type", b"application/json-seq")], "pass", None),
    ("a request that is no object", b"[1]", 200, [EVENT_STREAM, LENGTH], "pass", None),
    ("a request that is no JSON", b"\xff", 200, [EVENT_STREAM, LENGTH], "pass", None),
    ("a request over the limit", b'{"a":"%s"}' % (b"x" * 2000), 200, [JSON, LENGTH], "pass", None),
]


@pytest.mark.parametrize(
    ("body", "status", "headers", "mode", "out"), [pytest.param(*row[1:], id=row[0]) for row in STARTS]
)
def test_start(body: bytes, status: int, headers: Any, mode: str, out: Any) -> None:
    exchange = Exchange(Settings(tool_parser="hermes", max_body=2000), body)
    assert (exchange.mode, exchange.request_body) == ("pass", body)
    assert exchange.start(status, headers) == (headers if out is None else out)
    assert exchange.mode == mode


@pytest.mark.parametrize("body", [b"", b"\xff<think>", b'data: {"choices":[]}\n\n'])
def test_a_body_that_passes_is_untouched(driver: Any, body: bytes) -> None:
    assert run(driver.exchange(Settings(tool_parser="hermes"), [body, body], {}, "pass")).sent == [body, body, b""]


def test_a_json_body_over_the_limit_passes(driver: Any) -> None:
    body = json.dumps({"choices": [{"message": {"content": "<think>" * 300}}]}).encode()
    pieces = [body[:1500], body[1500:2001], body[2001:]]
    settings = Settings(reasoning_parser="qwen3", max_body=2000)
    assert run(driver.exchange(settings, pieces, None, "whole")).sent == [b"", body[:2001], body[2001:], b""]


def test_an_event_over_the_limit_passes_and_the_next_is_read(driver: Any) -> None:
    long = driver.event({"delta": {"content": "<think>" * 300}})
    upstream = [driver.event({"delta": {"role": "assistant"}}), long[:1500], long[1500:], {"delta": {"content": "Hm"}}]
    reply = driver.stream(Settings(reasoning_parser="qwen3", max_body=2000), upstream)
    assert b"".join(reply.sent[1:3]) == long
    assert reply.told[-1][1] == {"reasoning": "Hm"}


@pytest.mark.parametrize("kind", [EVENT_STREAM, JSON])
def test_closing_twice_gives_nothing_more(kind: Any) -> None:
    exchange = Exchange(Settings(tool_parser="hermes"), REQUEST)
    exchange.start(200, [kind])
    run(exchange.feed(b'{"a":1}'))
    assert run(exchange.close()) == b'{"a":1}'
    assert run(exchange.close()) == b""
    run(exchange.aclose())
    run(exchange.aclose())


async def without_first_call(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        if not isinstance(event, CallStart) or event.index > 0:
            yield event


async def shouting(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        yield Content(event.text.upper()) if isinstance(event, Content) else event


async def waiting(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        await asyncio.sleep(0)
        yield event


CALLS = "".join(
    f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>' for name in ("ping", "get_tide", "ping")
)


def test_calls_that_a_stage_leaves_out_leave_no_gap(driver: Any) -> None:
    settings = Settings(tool_parser="hermes", stages=[without_first_call])
    upstream = [{"delta": {"role": "assistant", "content": CALLS}}, {"finish_reason": "stop"}]
    streamed = [
        (call["function"]["name"], call["index"]) for call in driver.stream(settings, upstream).message["tool_calls"]
    ]
    whole = driver.whole(settings, {"choices": [{"message": {"content": CALLS}}]})["choices"][0]["message"][
        "tool_calls"
    ]
    assert streamed == [("get_tide", 0), ("ping", 1)]
    assert [call["function"]["name"] for call in whole] == ["get_tide", "ping"]


async def no_calls(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        if isinstance(event, Content):
            yield event


def test_a_reply_whose_calls_a_stage_left_out_stops(driver: Any) -> None:
    settings = Settings(tool_parser="hermes", stages=[no_calls])
    upstream = [{"delta": {"role": "assistant", "content": CALLS}}, {"finish_reason": "stop"}]
    assert driver.stream(settings, upstream).told[-1] == (0, {}, "stop")
    choice = {"message": {"content": CALLS}, "finish_reason": "stop"}
    assert driver.whole(settings, {"choices": [choice]})["choices"] == [
        {"message": {"content": None}, "finish_reason": "stop"}
    ]


def test_stages_without_a_parser(driver: Any) -> None:
    upstream = [
        {"delta": {"role": "assistant", "content": "Hi "}},
        {"delta": {"content": "you"}},
        {"finish_reason": "stop"},
    ]
    assert driver.stream(Settings(stages=[shouting]), upstream).message["content"] == "HI YOU"


async def test_a_stage_may_wait(driver: Any) -> None:
    settings = Settings(tool_parser="hermes", stages=[waiting, shouting])
    pieces = [driver.event({"delta": {"content": "a"}}), driver.event({"delta": {"content": "b"}})]
    reply = await driver.exchange(settings, pieces, None, "stream")
    assert [delta["content"] for _, delta, _ in reply.told] == ["A", "B"]


def test_a_stage_that_waits_under_a_synchronous_client(driver: Any) -> None:
    with pytest.raises(StageAwaitedError):
        driver.stream(Settings(tool_parser="hermes", stages=[waiting]), [{"delta": {"content": "a"}}])


class Counting:
    """A stage that counts how often it was freed."""

    def __init__(self) -> None:
        self.freed = 0

    async def stage(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        try:
            async for event in events:
                yield event
        finally:
            self.freed += 1


async def failing(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        raise LookupError(event)
        yield event


async def test_a_client_that_leaves_frees_the_stages(driver: Any) -> None:
    counting = Counting()
    exchange = Exchange(Settings(tool_parser="hermes", stages=[counting.stage]), REQUEST)
    exchange.start(200, [EVENT_STREAM])
    for index in range(2):
        await exchange.feed(driver.event({"delta": {"content": "a"}, "index": index}))
    await exchange.aclose()
    await exchange.aclose()
    assert counting.freed == 2


@pytest.mark.parametrize("mode", ["stream", "whole"])
async def test_what_a_stage_raises_comes_out_and_frees_the_others(driver: Any, mode: Any) -> None:
    counting = Counting()
    settings = Settings(tool_parser="hermes", stages=[counting.stage, failing])
    whole = json.dumps({"choices": [{"message": {"content": "a"}}]}).encode()
    body = whole if mode == "whole" else driver.event({"delta": {"content": "a"}})
    with pytest.raises(LookupError):
        await driver.exchange(settings, [body], None, mode)
    assert counting.freed == 1
