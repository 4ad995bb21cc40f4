"""Connections: used again after a stream, closed when the client breaks off, closed exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import openai
import pytest

from streamsieve.sdk_patch import AsyncSieveTransport, SieveTransport, wrap
from streamsieve.sdk_patch.drain import SECONDS

SOON = 1.0
"""Seconds in which an upstream is closed once its client has gone."""
STREAMS = 6


def read(client, chat) -> int:
    return sum(1 for _ in client.chat.completions.create(**chat, stream=True))


async def async_read(client, chat) -> int:
    return len([chunk async for chunk in await client.chat.completions.create(**chat, stream=True)])


def test_six_streams_use_one_connection(upstream, client, chat, parsers):
    wrapped = wrap(client, **parsers)
    for _ in range(STREAMS):
        read(wrapped, chat)
    assert (len(upstream.asked), len(upstream.connections)) == (STREAMS, 1)


async def test_six_asynchronous_streams_use_one_connection(upstream, async_client, chat, parsers):
    wrapped = wrap(async_client, **parsers)
    for _ in range(STREAMS):
        await async_read(wrapped, chat)
    assert (len(upstream.asked), len(upstream.connections)) == (STREAMS, 1)


def test_the_end_of_a_body_may_come_a_moment_after_done(upstream, client, chat, parsers):
    upstream.linger = SECONDS / 10
    wrapped = wrap(client, **parsers)
    for _ in range(STREAMS):
        read(wrapped, chat)
    assert len(upstream.connections) == 1


def test_an_upstream_that_lingers_after_done_does_not_hold_the_caller(upstream, client, chat, parsers):
    """Its connection is given up instead: the next stream has another one."""
    upstream.linger = 60
    wrapped = wrap(client, **parsers)
    began = time.monotonic()
    read(wrapped, chat)
    read(wrapped, chat)
    assert time.monotonic() - began < 10
    assert len(upstream.connections) == 2


async def test_nor_an_asynchronous_caller(upstream, async_client, chat, parsers):
    upstream.linger = 60
    wrapped = wrap(async_client, **parsers)
    began = time.monotonic()
    await async_read(wrapped, chat)
    await async_read(wrapped, chat)
    assert time.monotonic() - began < 10
    assert len(upstream.connections) == 2


def test_an_upstream_that_goes_on_talking_after_done_does_not_hold_the_caller(
    upstream, client, chat, events, done, parsers
):
    async def talkative():
        yield events("<think>a") + done
        while True:
            yield b": still here\n\n"
            await asyncio.sleep(0.01)

    upstream.script = [lambda _: upstream.streamed(talkative())]
    read(wrap(client, **parsers), chat)
    assert upstream.one_ended.wait(SOON)


def test_the_read_timeout_of_the_caller_is_back_after_the_drain(upstream, client, chat, parsers, events, done):
    """The next request on the connection waits longer than the drain would."""

    async def slow():
        await asyncio.sleep(SECONDS * 4)
        yield events("<think>a") + done

    wrapped = wrap(client, **parsers)
    read(wrapped, chat)
    upstream.script = [lambda _: upstream.streamed(slow())]
    read(wrapped, chat)
    assert len(upstream.connections) == 1


def test_threads_on_one_client_keep_their_timeouts(upstream, client, chat, parsers, events, done):
    """Connections change hands between threads right after a drain."""

    async def slow():
        yield events("<think>a")
        await asyncio.sleep(SECONDS * 2)
        yield events("b") + done

    wrapped = wrap(client, **parsers)
    failed = []

    def stream_often():
        try:
            for _ in range(4):
                assert read(wrapped, chat) == 2
        except Exception as error:
            failed.append(error)

    upstream.script = [lambda _: upstream.streamed(slow())] * 32
    threads = [threading.Thread(target=stream_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_break_closes_the_upstream_within_a_second(upstream, client, chat, parsers):
    upstream.script = [upstream.forever]
    stream = wrap(client, **parsers).chat.completions.create(**chat, stream=True)
    next(stream)
    stream.close()
    assert upstream.one_ended.wait(SOON)


async def test_an_asynchronous_break_does_too(upstream, async_client, chat, parsers):
    upstream.script = [upstream.forever]
    stream = await wrap(async_client, **parsers).chat.completions.create(**chat, stream=True)
    await anext(aiter(stream))
    await stream.close()
    assert await asyncio.to_thread(upstream.one_ended.wait, SOON)


async def test_a_cancelled_task_does_too(upstream, async_client, chat, parsers):
    upstream.script = [upstream.forever]
    streaming = asyncio.Event()

    async def consume():
        async for _ in await wrap(async_client, **parsers).chat.completions.create(**chat, stream=True):
            streaming.set()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(streaming.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(upstream.one_ended.wait, SOON)


def test_a_client_that_leaves_while_it_waits_for_a_json_answer(upstream, client, chat, parsers, events):
    """The body of a JSON answer is gathered; a timeout on the way closes the upstream."""

    async def never():
        yield b'{"choices": ['
        await asyncio.sleep(60)

    def answer(request):
        response = upstream.streamed(never())
        response.headers["content-type"] = "application/json"
        return response

    upstream.script = [answer]
    with pytest.raises(openai.APITimeoutError):
        wrap(client, **parsers).with_options(timeout=0.2).chat.completions.create(**chat)
    assert upstream.one_ended.wait(SOON)


@pytest.fixture
def freed():
    """A stage, and a list that it puts something into when it is freed."""
    found: list[bool] = []

    async def stage(events):
        try:
            async for event in events:
                yield event
        finally:
            found.append(True)

    return stage, found


def test_a_closed_stream_has_freed_its_stages(upstream, client, chat, freed, parsers):
    stage, found = freed
    upstream.script = [upstream.forever]
    stream = wrap(client, stages=[stage], **parsers).chat.completions.create(**chat, stream=True)
    next(stream)
    stream.close()
    assert found == [True]


async def test_a_closed_asynchronous_stream_has_freed_its_stages(upstream, async_client, chat, freed, parsers):
    stage, found = freed
    upstream.script = [upstream.forever]
    stream = await wrap(async_client, stages=[stage], **parsers).chat.completions.create(**chat, stream=True)
    await anext(aiter(stream))
    await stream.close()
    assert found == [True]


async def test_a_stream_closed_from_another_task_is_freed_by_its_reader(
    upstream, async_client, chat, events, freed, parsers
):
    async def stalled():
        yield events("<think>a")
        await asyncio.sleep(60)

    stage, found = freed
    upstream.script = [lambda _: upstream.streamed(stalled())]
    stream = await wrap(async_client, stages=[stage], **parsers).chat.completions.create(**chat, stream=True)
    await anext(aiter(stream))
    reader = asyncio.create_task(anext(aiter(stream)))
    await asyncio.sleep(0)
    await stream.close()
    assert await asyncio.to_thread(upstream.one_ended.wait, SOON)
    reader.cancel()
    await asyncio.wait([reader])
    assert found == [True]


def test_a_stream_closed_from_another_thread_is_freed_by_its_reader(upstream, client, chat, events, freed, parsers):
    """Closing does not wake a thread that reads; it fails as soon as something comes."""
    loop, go_on = [], asyncio.Event()

    async def stalled():
        loop.append(asyncio.get_running_loop())
        yield events("<think>a")
        await go_on.wait()
        while True:
            yield events("b")
            await asyncio.sleep(0.01)

    def consume():
        with contextlib.suppress(Exception):  # whatever a read from a closed connection is to this SDK
            list(stream)

    stage, found = freed
    upstream.script = [lambda _: upstream.streamed(stalled())]
    stream = wrap(client, stages=[stage], **parsers).chat.completions.create(**chat, stream=True)
    next(stream)
    reader = threading.Thread(target=consume)
    reader.start()
    time.sleep(0.05)
    stream.response.close()
    loop[0].call_soon_threadsafe(go_on.set)
    reader.join(10)
    assert not reader.is_alive()
    assert found == [True]


async def test_a_stream_may_be_closed_while_its_end_is_waited_for(upstream, async_client, chat, parsers):
    upstream.linger = 60
    stream = await wrap(async_client, **parsers).chat.completions.create(**chat, stream=True)
    last = asyncio.Event()

    async def consume():
        async for chunk in stream:
            if chunk.usage:
                last.set()

    reader = asyncio.create_task(consume())
    await asyncio.wait_for(last.wait(), 30)
    await asyncio.sleep(SECONDS / 4)
    await stream.close()
    await asyncio.wait_for(reader, 30)


async def test_two_tasks_may_close_a_stream_whose_stage_ends_slowly(async_client, upstream, chat, parsers):
    ended = []

    async def stage(events):
        try:
            async for event in events:
                yield event
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    upstream.script = [upstream.forever]
    stream = await wrap(async_client, stages=[stage], **parsers).chat.completions.create(**chat, stream=True)
    await anext(aiter(stream))
    sieve = stream.response.stream._stream
    await asyncio.gather(sieve.aclose(), sieve.aclose())
    assert ended == [True]


@pytest.fixture
def counting(http):
    """Inner transports that count how often the streams they return are closed."""
    closed = []

    class Body(http.SyncByteStream, http.AsyncByteStream):
        def __init__(self, pieces):
            self._pieces = pieces

        def __iter__(self):
            yield from self._pieces

        async def __aiter__(self):
            for piece in self._pieces:
                yield piece

        def close(self):
            closed.append(self)

        async def aclose(self):
            closed.append(self)

    def answer(pieces, kind="text/event-stream"):
        return http.MockTransport(
            lambda request: http.Response(200, headers={"content-type": kind}, stream=Body(pieces))
        )

    return answer, closed


@pytest.mark.parametrize("taken", [0, 1, None])
def test_a_stream_is_closed_exactly_once(taken, counting, http, chat, events, done, parsers):
    answer, closed = counting
    transport = SieveTransport(answer([events("<think>a"), events("b"), done]), **parsers)
    with openai.OpenAI(api_key="k", http_client=http.Client(transport=transport)) as client:
        stream = client.chat.completions.create(**chat, stream=True)
        for _ in zip(range(taken), stream, strict=False) if taken is not None else stream:
            assert len(closed) == 0
        stream.close()
        stream.close()
    assert len(closed) == 1


@pytest.mark.parametrize("taken", [0, 1, None])
async def test_an_asynchronous_stream_is_closed_exactly_once(taken, counting, http, chat, events, done, parsers):
    answer, closed = counting
    transport = AsyncSieveTransport(answer([events("<think>a"), events("b"), done]), **parsers)
    async with openai.AsyncOpenAI(api_key="k", http_client=http.AsyncClient(transport=transport)) as client:
        stream = await client.chat.completions.create(**chat, stream=True)
        if taken is None:
            assert len([chunk async for chunk in stream]) == 2
        for _ in range(taken or 0):
            await anext(aiter(stream))
        await stream.close()
        await stream.close()
    assert len(closed) == 1


def test_a_json_answer_is_closed_exactly_once(counting, http, chat, parsers):
    answer, closed = counting
    transport = SieveTransport(answer([b'{"choices"', b": []}"], "application/json"), **parsers)
    with openai.OpenAI(api_key="k", http_client=http.Client(transport=transport)) as client:
        assert client.chat.completions.create(**chat).choices == []
    assert len(closed) == 1


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_that_fails_on_its_way_is_closed_exactly_once(kind, counting, http, chat, events, parsers):
    answer, closed = counting

    def pieces():
        yield events("<think>a")
        raise http.ReadError("gone")

    transport = SieveTransport(answer(pieces(), kind), **parsers)
    with http.Client(transport=transport) as client, pytest.raises(http.ReadError):
        client.post("http://test/v1/chat/completions", json=chat)
    assert len(closed) == 1
