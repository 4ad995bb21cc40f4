"""Generators that block, for event loops: an engine that is not to be called from two threads, nor for two replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class OneThread:
    """One thread, on which one generator runs at a time; others wait for their turn."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="one-thread")
        self._turn = asyncio.Lock()

    async def iterate(self, make: Callable[[], Generator[T, None, None]]) -> AsyncGenerator[T, None]:
        """What the generator that `make` returns yields. When this is closed, so is it, after the step that runs."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            generator = await loop.run_in_executor(self._pool, make)
            try:
                while step := await loop.run_in_executor(self._pool, _step, generator):
                    yield step[0]
            finally:
                # In line behind a step that still runs: a thread cannot be stopped.
                self._pool.submit(generator.close)


def _step(generator: Generator[T, None, None]) -> tuple[T] | None:
    """The next value; None at the end, since a StopIteration cannot leave a future."""
    for value in generator:
        return (value,)
    return None
