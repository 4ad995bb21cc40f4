"""What is done with the body of one response: passed, gathered and rewritten, or rewritten as it comes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Literal, Protocol

Mode = Literal["pass", "stream", "whole"]

_logger = logging.getLogger(__name__)


class Body(Protocol):
    """Bytes of the upstream's body in, bytes for the client out."""

    @property
    def mode(self) -> Mode: ...

    def feed(self, data: bytes) -> Coroutine[object, object, bytes]: ...

    async def close(self) -> bytes: ...

    async def break_off(self) -> bytes: ...

    async def aclose(self) -> None: ...


class Untouched:
    """A body that is none of ours."""

    mode: Mode = "pass"

    async def feed(self, data: bytes) -> bytes:
        return data

    async def close(self) -> bytes:
        return b""

    async def break_off(self) -> bytes:
        return b""

    async def aclose(self) -> None:
        """Nothing is open."""


class Whole:
    """A JSON body, gathered up to `limit` bytes and then rewritten; a longer one passes as it is."""

    def __init__(self, rewrite: Callable[[bytes], Awaitable[bytes]], limit: int) -> None:
        self.mode: Mode = "whole"
        self._rewrite = rewrite
        self._limit = limit
        self._gathered = bytearray()

    def after(self, first: Callable[[bytes], bytes]) -> Whole:
        """The same, for a body of which `first` makes what is rewritten."""

        async def both(body: bytes) -> bytes:
            return await self._rewrite(first(body))

        return Whole(both, self._limit)

    async def feed(self, data: bytes) -> bytes:
        if self.mode == "pass":
            return data
        self._gathered += data
        if len(self._gathered) <= self._limit:
            return b""
        _logger.warning("a response body over max_body (%d bytes) passes unparsed", self._limit)
        self.mode = "pass"
        return self._taken()

    async def close(self) -> bytes:
        return await self._rewrite(self._taken()) if self.mode == "whole" else b""

    async def break_off(self) -> bytes:
        return b""  # a status can still be sent, which says more

    async def aclose(self) -> None:
        """Nothing is open between calls."""

    def _taken(self) -> bytes:
        body = bytes(self._gathered)
        self._gathered.clear()
        return body


class Piped:
    """Two streams, the second reading what the first gives out."""

    mode: Mode = "stream"

    def __init__(self, first: Body, second: Body) -> None:
        self._first = first
        self._second = second

    async def feed(self, data: bytes) -> bytes:
        out = await self._first.feed(data)
        return await self._second.feed(out) if out else b""

    async def close(self) -> bytes:
        rest = await self._first.close()
        return (await self._second.feed(rest) if rest else b"") + await self._second.close()

    async def break_off(self) -> bytes:
        rest = await self._first.break_off()
        return await self._second.feed(rest) if rest else await self._second.break_off()

    async def aclose(self) -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._first.aclose)
            stack.push_async_callback(self._second.aclose)
