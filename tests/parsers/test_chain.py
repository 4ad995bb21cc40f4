"""The chain driver: the same stages under no loop, under asyncio and under trio."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TypeVar

import anyio
import pytest
import trio

from streamsieve.parsers.chain import Chain, DeadChainError, Stage, StageAwaitedError, run
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.events import CallArguments, Content, Event

T = TypeVar("T")
Events = AsyncIterator[Event]


class Letters:
    """A machine that makes one `Content` of each letter, and one of the finish reason."""

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        return [Content(letter) for letter in text]

    def finish(self, reason: str | None) -> list[Event]:
        return [Content(f"<{reason}>")]


def drive_asyncio(coroutine: Coroutine[object, object, T]) -> T:
    return asyncio.run(coroutine)


def drive_trio(coroutine: Coroutine[object, object, T]) -> T:
    async def main() -> T:
        return await coroutine

    return trio.run(main)


Drive = Callable[[Coroutine[object, object, T]], T]
loops = pytest.mark.parametrize("drive", [drive_asyncio, drive_trio])
everywhere = pytest.mark.parametrize("drive", [run, drive_asyncio, drive_trio])


def texts(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Content))


async def same(events: Events) -> Events:
    async for event in events:
        yield event


async def doubled(events: Events) -> Events:
    async for event in events:
        yield event
        yield event


async def without_x(events: Events) -> Events:
    async for event in events:
        if event != Content("x"):
            yield event


async def in_pairs(events: Events) -> Events:
    """Holds one event back, and flushes it after the end."""
    held: Event | None = None
    async for event in events:
        if held is None:
            held = event
            continue
        yield held
        yield event
        held = None
    if held is not None:
        yield held
    yield Content("!")


async def first_three(events: Events) -> Events:
    taken = 0
    async for event in events:
        yield event
        taken += 1
        if taken == 3:
            return


async def in_background(events: Events) -> Events:
    """Reads from a generator of its own."""

    async def upper() -> Events:
        async for event in events:
            assert isinstance(event, Content)
            yield Content(event.text.upper())

    async for event in upper():
        yield event


class Counted:
    """A stage that is no function: any callable that returns an async iterator is one."""

    def __init__(self) -> None:
        self.seen = 0

    async def __call__(self, events: Events) -> Events:
        async for event in events:
            self.seen += 1
            yield event


@everywhere
@pytest.mark.parametrize(
    ("stages", "fed"),
    [
        ([], ["ab", "", "c", "<stop>"]),
        ([same], ["ab", "", "c", "<stop>"]),
        ([same, same, same], ["ab", "", "c", "<stop>"]),
        ([doubled], ["aabb", "", "cc", "<stop><stop>"]),
        ([without_x, doubled], ["aabb", "", "cc", "<stop><stop>"]),
        ([in_pairs], ["ab", "", "", "c<stop>!"]),
        ([in_pairs, in_pairs], ["ab", "", "", "c<stop>!!"]),
        ([doubled, first_three], ["aab", "", "", ""]),
        ([first_three, in_pairs], ["ab", "", "c!", ""]),
        ([in_background], ["AB", "", "C", "<STOP>"]),
        ([Counted()], ["ab", "", "c", "<stop>"]),
    ],
)
def test_each_call_gives_what_the_last_stage_yields_for_it(
    drive: Drive[list[str]], stages: list[Stage], fed: list[str]
) -> None:
    async def feed_all() -> list[str]:
        chain = Chain(Letters(), stages)
        out = [texts(await chain.feed(text)) for text in ("ab", "", "c")]
        out.append(texts(await chain.finish("stop")))
        await chain.aclose()
        return out

    assert drive(feed_all()) == fed


def test_events_pass_unchanged_and_token_ids_reach_the_machine() -> None:
    seen: list[Sequence[int] | None] = []
    arguments: list[Event] = [CallArguments(0, "{}")]

    class Recording(Letters):
        def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
            seen.append(token_ids)
            return arguments

    chain = Chain(Recording(), [same])
    assert run(chain.feed("x", [7])) == arguments
    assert seen == [[7]]
    run(chain.aclose())


# Stages that really await


async def sleeping(events: Events) -> Events:
    await anyio.sleep(0.001)
    async for event in events:
        await anyio.sleep(0.001)
        yield event
    await anyio.sleep(0.001)
    yield Content("?")


async def catching(events: Events) -> Events:
    """An exception that the loop throws in at an await arrives in the stage."""
    async for event in events:
        with anyio.move_on_after(0.001) as scope:
            await anyio.sleep_forever()
        yield Content("late") if scope.cancelled_caught else event


@loops
@pytest.mark.parametrize(
    ("stages", "out"),
    [
        ([sleeping], "ab<stop>?"),
        ([sleeping, in_pairs, sleeping], "ab<stop>?!?"),
        ([catching], "latelatelate"),
    ],
)
def test_a_stage_may_await_under_an_event_loop(drive: Drive[str], stages: list[Stage], out: str) -> None:
    async def feed_all() -> str:
        chain = Chain(Letters(), stages)
        events = [*await chain.feed("a"), *await chain.feed("b"), *await chain.finish("stop")]
        await chain.aclose()
        return texts(events)

    assert drive(feed_all()) == out


async def only_yielding(events: Events) -> Events:
    async for event in events:
        await asyncio.sleep(0)  # suspends without asking for the running loop
        yield event


async def swallowing(events: Events) -> Events:
    async for event in events:
        try:
            await asyncio.sleep(0)
        except StageAwaitedError:
            yield event


async def on_trio(events: Events) -> Events:
    async for event in events:
        await trio.sleep(0)
        yield event


async def on_asyncio(events: Events) -> Events:
    async for event in events:
        async with asyncio.timeout(1):
            yield event


async def persisting(events: Events) -> Events:
    async for event in events:
        for _ in range(3):
            with suppress(StageAwaitedError):
                await asyncio.sleep(0)
        yield event


@pytest.mark.parametrize("stage", [only_yielding, swallowing, persisting, sleeping, on_trio, on_asyncio])
def test_a_stage_that_awaits_under_run_is_a_clear_error(stage: Stage) -> None:
    chain = Chain(Letters(), [same, stage])
    with pytest.raises(StageAwaitedError, match="the client is synchronous") as raised:
        run(chain.feed("a"))
    failure = raised.value.__cause__ or raised.value
    if stage not in (swallowing, persisting):
        assert stage.__code__.co_name in {frame.name for frame in traceback_of(failure)}
    run(chain.aclose())


def traceback_of(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def test_run_leaves_other_errors_as_they_are() -> None:
    async def failing(events: Events) -> Events:
        async for _ in events:
            raise RuntimeError("disk full")
            yield Content("")

    chain = Chain(Letters(), [failing])
    with pytest.raises(RuntimeError, match=r"^disk full$"):
        run(chain.feed("a"))
    run(chain.aclose())


# Ends


class Resource:
    """A stage that notes how it ended; with `pause` its clean-up awaits."""

    def __init__(self, pause: Callable[[], Awaitable[None]] | None = None) -> None:
        self.ends: list[str] = []
        self.pause = pause

    async def stage(self, events: Events) -> Events:
        try:
            async for event in events:
                yield event
            self.ends.append("end")
        except BaseException as error:
            self.ends.append(type(error).__name__)
            raise
        finally:
            if self.pause is not None:
                await self.pause()
            self.ends.append("closed")


@everywhere
def test_aclose_runs_finally_blocks_and_emits_nothing(drive: Drive[None]) -> None:
    first, last = Resource(), Resource()

    async def feed_and_leave() -> None:
        chain = Chain(Letters(), [first.stage, doubled, last.stage])
        await chain.feed("ab")
        await chain.aclose()
        await chain.aclose()

    drive(feed_and_leave())
    assert first.ends == last.ends == ["GeneratorExit", "closed"]


@loops
def test_a_finally_block_may_await(drive: Drive[None]) -> None:
    first, last = (Resource(lambda: anyio.sleep(0.001)) for _ in range(2))

    async def feed_and_leave() -> None:
        chain = Chain(Letters(), [first.stage, last.stage])
        await chain.feed("ab")
        await chain.aclose()

    drive(feed_and_leave())
    assert first.ends == last.ends == ["GeneratorExit", "closed"]


@everywhere
def test_a_stage_whose_reader_returned_early_is_closed_too(drive: Drive[None]) -> None:
    resource, finished = Resource(), Resource()

    async def feed_and_leave() -> None:
        chain = Chain(Letters(), [resource.stage, first_three])
        await chain.feed("abcd")
        await chain.aclose()
        chain = Chain(Letters(), [finished.stage, first_three])
        await chain.feed("abcd")
        await chain.finish("stop")

    drive(feed_and_leave())
    assert resource.ends == finished.ends == ["GeneratorExit", "closed"]


def test_a_chain_that_was_never_fed_runs_no_stage() -> None:
    resource = Resource()
    chain = Chain(Letters(), [resource.stage])
    run(chain.aclose())
    assert resource.ends == []


async def failing(events: Events) -> Events:
    async for event in events:
        if event == Content("b"):
            raise LookupError("no such rule")
        yield event


@everywhere
@pytest.mark.parametrize("before", [True, False])
def test_an_exception_of_a_stage_propagates_and_the_chain_is_dead(drive: Drive[None], before: bool) -> None:
    resource = Resource()
    stages: list[Stage] = [resource.stage, failing] if before else [failing, resource.stage]

    async def fail() -> None:
        chain = Chain(Letters(), stages)
        assert texts(await chain.feed("a")) == "a"
        with pytest.raises(LookupError, match="no such rule"):
            await chain.feed("b")
        with pytest.raises(DeadChainError, match=r"feed: .* a stage failed"):
            await chain.feed("c")
        with pytest.raises(DeadChainError, match=r"finish: .* a stage failed"):
            await chain.finish("stop")
        await chain.aclose()

    drive(fail())
    assert resource.ends == ["GeneratorExit" if before else "LookupError", "closed"]


@pytest.mark.parametrize(("end", "why"), [("finish", "the reply was finished"), ("aclose", "the chain was closed")])
def test_an_ended_chain_says_why_it_takes_nothing(end: str, why: str) -> None:
    chain = Chain(Letters(), [same])
    run(chain.feed("a"))
    run(chain.finish("stop") if end == "finish" else chain.aclose())
    with pytest.raises(DeadChainError, match=why):
        run(chain.feed("b"))
    run(chain.aclose())


def test_an_error_while_closing_one_stage_leaves_none_open() -> None:
    async def leaving_badly(events: Events) -> Events:
        try:
            async for event in events:
                yield event
        finally:
            raise OSError("cannot flush")

    first, last = Resource(), Resource()
    chain = Chain(Letters(), [first.stage, leaving_badly, last.stage])
    run(chain.feed("a"))
    with pytest.raises(OSError, match="cannot flush"):
        run(chain.aclose())
    assert first.ends[-1] == last.ends[-1] == "closed"


@loops
def test_cancellation_reaches_the_stage_that_awaits(drive: Drive[None]) -> None:
    ends: list[str] = []

    async def stuck(events: Events) -> Events:
        async for event in events:
            try:
                await anyio.sleep_forever()
            finally:
                ends.append("left")
            yield event

    resource = Resource()

    async def cancel() -> None:
        chain = Chain(Letters(), [resource.stage, stuck])
        with anyio.move_on_after(0.01) as scope:
            await chain.feed("a")
        assert scope.cancelled_caught
        with pytest.raises(DeadChainError, match="a stage failed"):
            await chain.feed("b")
        await chain.aclose()

    drive(cancel())
    assert ends == ["left"]
    assert resource.ends == ["GeneratorExit", "closed"]


@loops
def test_a_call_during_another_is_refused_and_does_no_harm(drive: Drive[None]) -> None:
    async def overlap() -> None:
        waiting, go_on = anyio.Event(), anyio.Event()

        async def gated(events: Events) -> Events:
            async for event in events:
                waiting.set()
                await go_on.wait()
                yield event

        chain = Chain(Letters(), [gated])
        out: list[Event] = []

        async def feed() -> None:
            out.extend(await chain.feed("a"))

        async with anyio.create_task_group() as group:
            group.start_soon(feed)
            await waiting.wait()
            for call in (lambda: chain.feed("b"), lambda: chain.finish("stop"), lambda: chain.aclose()):
                with pytest.raises(DeadChainError, match="still awaiting"):
                    await call()
            go_on.set()
        assert texts([*out, *await chain.feed("c")]) == "ac"
        await chain.aclose()

    drive(overlap())


def test_many_dropped_chains_leave_nothing_behind() -> None:
    async def abort(count: int) -> None:
        for _ in range(count):
            chain = Chain(Letters(), [same, in_pairs])
            await chain.feed("abc")
            await chain.aclose()

    async def count_left() -> int:
        await abort(10)
        gc.collect()
        before = len(gc.get_objects())
        await abort(1000)
        gc.collect()
        return len(gc.get_objects()) - before

    assert asyncio.run(count_left()) < 50


@loops
def test_a_chain_dropped_without_aclose_is_collected_in_silence(drive: Drive[None]) -> None:
    """Under a client whose user leaves a stream half read; pytest turns a complaint into a failure."""
    resource = Resource()

    async def drop() -> None:
        hooks = sys.get_asyncgen_hooks()
        await Chain(Letters(), [resource.stage, in_pairs]).feed("abc")
        assert sys.get_asyncgen_hooks() == hooks  # other generators stay in the loop's care

    async def drop_and_collect() -> None:
        await drop()
        gc.collect()
        await anyio.sleep(0)

    drive(drop_and_collect())
    assert resource.ends == ["GeneratorExit", "closed"]


async def no_generator(events: Events) -> None:
    async for _ in events:
        return


@pytest.mark.parametrize("stage", [no_generator, lambda events: None, lambda events: [events]])
def test_what_is_no_stage_is_refused_at_construction(stage: Stage) -> None:
    name = re.escape(stage.__qualname__)
    with pytest.raises(ConfigurationError, match=f"stages: {name} is not an async generator function"):
        Chain(Letters(), [stage])
