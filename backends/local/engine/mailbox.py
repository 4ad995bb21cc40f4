"""The way of tokens from the engine's thread to the event loops that wait for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamsieve.backends.local.sampling.token import Token


class Mailbox:
    """What one reply got and nobody has read yet. Lives on one event loop; all of it is called there."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._tokens: list[Token] = []
        self._ended = False
        self._failure: Exception | None = None
        self._arrival = asyncio.Event()

    def put(self, tokens: Sequence[Token], ended: bool, failure: Exception | None) -> None:
        """Add `tokens`; `ended`: they are the last, and reading on raises `failure` where there is one."""
        self._tokens.extend(tokens)
        self._ended = self._ended or ended
        self._failure = self._failure or failure
        self._arrival.set()

    async def take(self) -> Sequence[Token]:
        """All that has arrived, waiting for at least one token; empty once the reply has ended. Raises its failure."""
        await self._arrival.wait()
        tokens, self._tokens = self._tokens, []
        if not tokens and self._failure is not None:
            raise self._failure
        if not self._ended:
            self._arrival.clear()
        return tokens


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one step has for one reply."""

    mailbox: Mailbox
    tokens: Sequence[Token] = ()
    ended: bool = False
    failure: Exception | None = None


def deliver(deliveries: Iterable[Delivery]) -> None:
    """Wake each event loop once for all that is meant for it. From any thread; a loop that is closed gets nothing."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Delivery]] = {}
    for delivery in deliveries:
        by_loop.setdefault(delivery.mailbox.loop, []).append(delivery)
    for loop, batch in by_loop.items():
        with contextlib.suppress(RuntimeError):  # closed: its readers are gone
            loop.call_soon_threadsafe(_put, batch)


def _put(batch: Sequence[Delivery]) -> None:
    for delivery in batch:
        delivery.mailbox.put(delivery.tokens, delivery.ended, delivery.failure)
