"""An ASGI application behind uvicorn on a free loopback port, in a thread: for the demo, examples and tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from streamsieve.backends.listener import listening

START_TIMEOUT = 30.0
"""Seconds."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.settled.set()


@contextmanager
def loopback(app: ASGIApp) -> Iterator[str]:
    """The server's root URL while the block runs; then the server is stopped, open streams cut after a second."""
    config = uvicorn.Config(
        app, log_level="critical", server_header=False, date_header=False, timeout_graceful_shutdown=1
    )
    listener = listening("127.0.0.1", 0)
    server = _Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="loopback", daemon=True)
    thread.start()
    server.settled.wait(START_TIMEOUT)
    if not server.started:
        listener.close()
        raise RuntimeError("the loopback server did not start: the application's lifespan failed")
    host, port = listener.getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()
