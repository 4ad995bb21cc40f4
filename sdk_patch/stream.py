"""The body of one rewritten response: one iterator, never restarted, freed and closed once.

The SDK stops reading at `[DONE]`, and openai 3 then iterates an asynchronous stream a second time to
read what is left. So there is one generator per stream, and every iteration continues it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, cast

from streamsieve.parsers.chain import run
from streamsieve.sdk_patch.drain import Drain
from streamsieve.sdk_patch.family import Family
from streamsieve.wire.exchange import Exchange

if TYPE_CHECKING:
    import httpx2


class SieveStream:
    """A response's bytes through an exchange, for synchronous clients.

    `close` may come at any time, also from another thread while this one reads; the reader then fails as
    it does when the connection under it is closed, and frees the exchange itself.
    """

    def __init__(self, response: httpx2.Response, exchange: Exchange, family: Family) -> None:
        self._response = response
        self._exchange = exchange
        self._drain = Drain(response, family)
        self._failed = family.RequestError
        self._source = response.iter_bytes()
        self._ahead = b""
        self._pieces = cast("GeneratorType[bytes, None, None]", self._rewrite())

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def gather(self) -> bytes | None:
        """The whole body of a JSON answer; instead of iterating, and `close` still has to come.

        None where it is longer than may be gathered: iterating then gives it, from its beginning.
        """
        for data in self._source:
            self._ahead = run(self._exchange.feed(data))
            if self._ahead:
                return None
        return run(self._exchange.close())

    def _rewrite(self) -> Generator[bytes, None, None]:
        try:
            if self._ahead:
                yield self._ahead
            for data in self._source:
                out = run(self._exchange.feed(data))
                if out:
                    self._drain.saw(out)
                    yield out
            rest = run(self._exchange.close())
            if rest:
                yield rest
        except self._failed:  # which tells the client more than an event of ours
            run(self._exchange.break_off())
            raise
        finally:
            run(self._exchange.aclose())

    def close(self) -> None:
        try:
            if not self._pieces.gi_running:
                self._drain.read(self._pieces)
        finally:
            self._response.close()
            if not self._pieces.gi_running:
                self._pieces.close()
                run(self._exchange.aclose())  # a generator that never ran has no `finally` to run


class AsyncSieveStream:
    """`SieveStream` for asynchronous clients; `aclose` may come from another task."""

    def __init__(self, response: httpx2.Response, exchange: Exchange, family: Family) -> None:
        self._response = response
        self._exchange = exchange
        self._drain = Drain(response, family)
        self._failed = family.RequestError
        self._source = response.aiter_bytes()
        self._ahead = b""
        self._pieces = cast("AsyncGeneratorType[bytes, None]", self._rewrite())

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def gather(self) -> bytes | None:
        """The whole body, or None, as `SieveStream.gather`."""
        async for data in self._source:
            self._ahead = await self._exchange.feed(data)
            if self._ahead:
                return None
        return await self._exchange.close()

    async def _rewrite(self) -> AsyncGenerator[bytes, None]:
        try:
            if self._ahead:
                yield self._ahead
            async with aclosing(self._source) as source:
                async for data in source:
                    out = await self._exchange.feed(data)
                    if out:
                        self._drain.saw(out)
                        yield out
            rest = await self._exchange.close()
            if rest:
                yield rest
        except self._failed:
            await self._exchange.break_off()
            raise
        finally:
            await self._exchange.aclose()

    async def aclose(self) -> None:
        try:
            if not self._pieces.ag_running:
                await self._drain.aread(self._pieces)
        finally:
            try:
                await self._response.aclose()
            finally:
                if not self._pieces.ag_running:
                    await self._pieces.aclose()
                    await self._exchange.aclose()
