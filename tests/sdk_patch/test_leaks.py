"""Nothing stays of streams that broke off, and a long stream costs no memory of its own."""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc

import pytest

from streamsieve.sdk_patch import SieveTransport, wrap
from streamsieve.sdk_patch.stream import AsyncSieveStream, SieveStream
from streamsieve.wire.exchange import Exchange

ABORTED = 1000
MIB = 1024 * 1024


def living(*kinds: type) -> int:
    gc.collect()
    return sum(issubclass(type(found), kinds) for found in gc.get_objects())


def sockets() -> int:
    """The process's sockets; the upstream's ends of the connections are among them."""
    count = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
        except FileNotFoundError:
            continue  # the listing's own
    return count


@pytest.fixture
def counted():
    """A stage, and the reasons why it is still or again alive: one entry for each stream it stands in."""
    live: list[object] = []

    async def stage(events):
        live.append(events)
        try:
            async for event in events:
                yield event
        finally:
            live.remove(events)

    return stage, live


def all_ended(upstream) -> bool:
    """Whether the upstream has heard of every client's going away, after a little patience."""
    for _ in range(30):
        upstream.one_ended.clear()
        if upstream.ended == ABORTED:
            return True
        upstream.one_ended.wait(1)
    return upstream.ended == ABORTED


@pytest.mark.parametrize("how", ["closed", "dropped"])
def test_a_thousand_streams_that_broke_off(how, upstream, client, chat, counted, parsers, http):
    if how == "dropped" and http.__name__ == "httpx":
        pytest.skip("a stream that is collected while httpx's pool holds its own lock deadlocks there, without us too")
    stage, live = counted
    wrapped = wrap(client, stages=[stage], **parsers)
    upstream.script = [upstream.forever] * ABORTED
    before = sockets()
    for _ in range(ABORTED):
        stream = wrapped.chat.completions.create(**chat, stream=True)
        next(stream)
        if how == "closed":
            stream.close()
        del stream
    assert living(Exchange, SieveStream) == 0
    assert live == []
    assert all_ended(upstream)
    assert sockets() <= before + 2  # one connection may be about to go, and has two ends


@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_a_thousand_asynchronous_streams_that_broke_off(how, upstream, async_client, chat, counted, parsers):
    stage, live = counted
    wrapped = wrap(async_client, stages=[stage], **parsers)
    upstream.script = [upstream.forever] * ABORTED
    before = sockets()

    async def break_off() -> None:
        stream = await wrapped.chat.completions.create(**chat, stream=True)
        async for _ in stream:
            if how == "closed":
                await stream.close()
                return
            asyncio.current_task().cancel()

    for _ in range(ABORTED // 20):
        await asyncio.gather(*(break_off() for _ in range(20)), return_exceptions=True)
    for _ in range(100):  # the loop closes the SDK's own generators in tasks, one inside the other
        if living(Exchange, AsyncSieveStream) == 0:
            break
        await asyncio.sleep(0.01)
    assert living(Exchange, AsyncSieveStream) == 0
    assert live == []
    assert await asyncio.to_thread(all_ended, upstream)
    assert sockets() <= before + 2


def test_a_reply_of_ten_megabytes_needs_two_at_most(http, chat, events, done, parsers):
    """At the peak, everything that is allocated while the stream is read."""
    delta = events("word and " * 400)
    thinking = events("<think>Hm.</think>")

    class Reply(http.SyncByteStream):
        def __iter__(self):
            yield thinking
            for _ in range(10 * MIB // len(delta)):
                yield delta
            yield done

    kind = {"content-type": "text/event-stream"}
    inner = http.MockTransport(lambda request: http.Response(200, headers=kind, stream=Reply()))
    size = 0
    with (
        http.Client(transport=SieveTransport(inner, **parsers)) as client,
        client.stream("POST", "http://test/v1/chat/completions", json={**chat, "stream": True}) as response,
    ):
        tracemalloc.start()
        try:
            for piece in response.iter_bytes():
                size += len(piece)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert size > 9 * MIB
    assert peak < 2 * MIB
