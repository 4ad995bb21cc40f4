"""Reading what comes after `[DONE]`, so that the connection can be used again.

A client stops reading at `[DONE]`, but an HTTP/1.1 connection is free for the next request only when the
body's own end, a few bytes later, has been read too. It is read at close, and briefly: an upstream that
keeps the body open costs its connection, never the caller's time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, cast

from streamsieve.sdk_patch.family import Family

if TYPE_CHECKING:
    import httpx2

SECONDS = 0.1
"""How long the end of the body is waited for; the figure that openai 3 has for its own asynchronous streams."""


class NetworkStream(Protocol):
    """What is used of the `network_stream` that a response of httpx carries; asynchronous ones return an awaitable."""

    def read(self, max_bytes: int, timeout: float | None = None) -> object: ...


class Drain:
    """The end of one response's body."""

    def __init__(self, response: httpx2.Response, family: Family) -> None:
        self._response = response
        self._family = family
        self._done = False

    def saw(self, data: bytes) -> None:
        """Note what goes to the client: `[DONE]` is the last thing it reads."""
        self._done = data[-16:].rstrip().endswith(b"[DONE]")

    def read(self, pieces: Iterator[bytes]) -> None:
        """Read `pieces` to the end if the client is done with them, and only for a moment."""
        if not self._is_due():
            return
        with self._brief_reads() as until:
            try:
                for _ in pieces:
                    if time.monotonic() > until:
                        return
            except self._family.RequestError:
                return  # no end in time: the connection goes with the response

    async def aread(self, pieces: AsyncIterator[bytes]) -> None:
        """`read` for an asynchronous stream."""
        if not self._is_due():
            return
        with self._brief_reads() as until:
            try:
                async for _ in pieces:
                    if time.monotonic() > until:
                        return
            except self._family.RequestError:
                return

    def _is_due(self) -> bool:
        """Not on HTTP/2, where a stream ends without its connection and the reads are everybody's."""
        return (
            self._done
            and not self._response.is_closed
            and self._response.http_version == "HTTP/1.1"
            and hasattr(self._response.extensions.get("network_stream"), "__dict__")
        )

    @contextmanager
    def _brief_reads(self) -> Iterator[float]:
        """Reads of this response wait no longer than `SECONDS`; yields when to stop altogether.

        The timeout of a body is fixed when its reading starts, hence a layer over the connection's `read`.
        As soon as the end is read the connection may be another request's, with this layer still on it,
        or that one's over it: so it does nothing once this response is closed, and takes off only itself.
        """
        network = cast("NetworkStream", self._response.extensions["network_stream"])
        response = self._response

        def read(max_bytes: int, timeout: float | None = None) -> object:
            return inner(max_bytes, timeout=timeout if response.is_closed else SECONDS)

        with _layering:
            inner = network.read
            network.read = read  # type: ignore[method-assign]
        try:
            yield time.monotonic() + SECONDS
        finally:
            with _layering:
                if vars(network).get("read") is read:
                    del network.read


_layering = threading.Lock()
