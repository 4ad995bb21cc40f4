"""Generators that block, on a thread of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator
from contextlib import aclosing
from functools import partial

import pytest

from streamsieve.backends.one_thread import OneThread


async def test_all_that_is_yielded_comes_from_one_thread() -> None:
    def write(count: int) -> Generator[tuple[int, int], None, None]:
        for number in range(count):
            yield number, threading.get_ident()

    thread = OneThread()
    steps = [step for count in (3, 0, 2) async for step in thread.iterate(partial(write, count))]
    assert [number for number, _ in steps] == [0, 1, 2, 0, 1]
    assert len({ident for _, ident in steps} | {threading.get_ident()}) == 2


async def test_one_after_the_other() -> None:
    running: list[int] = []

    def write(number: int) -> Generator[int, None, None]:
        running.append(number)
        for _ in range(3):
            assert running == [number]
            time.sleep(0.005)
            yield number
        running.remove(number)

    async def read(number: int) -> list[int]:
        return [step async for step in thread.iterate(lambda: write(number))]

    thread = OneThread()
    assert await asyncio.gather(*map(read, range(3))) == [[0] * 3, [1] * 3, [2] * 3]


async def test_one_that_is_left_is_closed_before_the_next_begins() -> None:
    events: list[str] = []

    def write(name: str) -> Generator[str, None, None]:
        events.append(f"{name} begins")
        try:
            while True:
                time.sleep(0.01)
                yield name
        finally:
            events.append(f"{name} ends")

    async def read(name: str) -> None:
        async with aclosing(thread.iterate(lambda: write(name))) as steps:
            await anext(steps)
            await anext(steps)

    thread = OneThread()
    reading = asyncio.create_task(read("first"))
    await asyncio.sleep(0.015)  # within a step
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await read("second")
    assert events[:3] == ["first begins", "first ends", "second begins"]


async def test_what_it_raises_is_raised() -> None:
    def write() -> Generator[int, None, None]:
        yield 1
        raise KeyError("x")

    with pytest.raises(KeyError):
        _ = [step async for step in OneThread().iterate(write)]
