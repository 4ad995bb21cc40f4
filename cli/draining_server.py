"""A server that has its backend end its replies before it cuts connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine

import uvicorn


class DrainingServer(uvicorn.Server):
    """Calls `drain` when it is told to stop, and goes on when that is through, or when it is told once more."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Coroutine[None, None, None]]) -> None:
        super().__init__(config)
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        draining = asyncio.create_task(self._drain())
        while not draining.done() and not self.force_exit:
            await asyncio.wait([draining], timeout=0.1)
        await super().shutdown(sockets)
