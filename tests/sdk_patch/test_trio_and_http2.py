"""The wrapped client on trio, and over HTTP/2."""

from __future__ import annotations

import asyncio
import os
import socket
import threading

import openai
import pytest

from streamsieve.sdk_patch import wrap

STREAMS = 6


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning",  # the SDK leaves its own generators to be collected, which trio remarks on
    "ignore::pytest.PytestUnraisableExceptionWarning",
)
def test_streams_on_trio(upstream, chat, parsers):
    """Connections are used again, and a cancelled stream closes the upstream within a second."""
    trio = pytest.importorskip("trio")

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=upstream.url, api_key="k", max_retries=0) as client:
            wrapped = wrap(client, **parsers)
            for _ in range(STREAMS):
                assert len([chunk async for chunk in await wrapped.chat.completions.create(**chat, stream=True)]) > 5
            assert len(upstream.connections) == 1
            upstream.script = [upstream.forever]
            upstream.one_ended.clear()
            with trio.fail_after(30), trio.CancelScope() as scope:
                async for _ in await wrapped.chat.completions.create(**chat, stream=True):
                    scope.cancel()
            assert await trio.to_thread.run_sync(upstream.one_ended.wait, 1)

    trio.run(main)


@pytest.fixture
def http2_url(upstream):
    """The upstream behind a server that speaks HTTP/2 without TLS."""
    pytest.importorskip("h2")
    served = pytest.importorskip("hypercorn.asyncio")
    config = pytest.importorskip("hypercorn.config").Config()
    listener = socket.create_server(("127.0.0.1", 0))
    config.bind = [f"fd://{os.dup(listener.fileno())}"]  # hypercorn closes what it is given
    config.errorlog = None
    stop = threading.Event()

    async def serve() -> None:
        await served.serve(upstream, config, shutdown_trigger=lambda: asyncio.to_thread(stop.wait))

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    host, port = listener.getsockname()
    yield f"http://{host}:{port}/v1"
    stop.set()
    thread.join(10)
    listener.close()


def test_streams_over_http2_share_their_connection(http2_url, upstream, http, chat, parsers):
    """Two at once, one of which breaks off: the other goes on, and nothing is drained."""
    http_client = http.Client(http1=False, http2=True)
    with openai.OpenAI(base_url=http2_url, api_key="k", max_retries=0, http_client=http_client) as client:
        wrapped = wrap(client, **parsers)
        upstream.script = [upstream.forever]
        broken_off = wrapped.chat.completions.create(**chat, stream=True)
        next(broken_off)
        whole = wrapped.chat.completions.create(**chat, stream=True)
        assert whole.response.http_version == "HTTP/2"
        next(whole)
        broken_off.close()
        assert len(list(whole)) > 5
        assert upstream.one_ended.wait(1)
        assert len(upstream.connections) == 1
