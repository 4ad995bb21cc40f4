"""Stopping a server: the backend first, then the connections."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from streamsieve.backends.listener import listening
from streamsieve.cli.draining_server import DrainingServer


@pytest.mark.parametrize("is_told_twice", [False, True])
async def test_replies_end_before_connections_are_cut(is_told_twice: bool) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await ended.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ended"})

    async def drain() -> None:
        if is_told_twice:
            server.force_exit = True
            await asyncio.sleep(60)
        ended.set()

    config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=60)
    server = DrainingServer(config, drain)
    listener = listening("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with httpx2.AsyncClient() as client:
        asking = asyncio.create_task(client.get(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        await asyncio.wait_for(asked.wait(), 10)
        server.should_exit = True
        if is_told_twice:
            await asyncio.wait_for(serving, 10)
            ended.set()
            await asyncio.gather(asking, return_exceptions=True)
        else:
            assert (await asyncio.wait_for(asking, 10)).content == b"ended"
            await asyncio.wait_for(serving, 10)
