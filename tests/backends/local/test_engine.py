"""The engine round an executor that is a script: admission, cancelling, failing, draining."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from torch import Tensor

from streamsieve.backends.local.engine.engine import FAILURES, Engine, Health
from streamsieve.backends.local.engine.executor import Usage
from streamsieve.backends.local.engine.jobs import EngineDead, EngineFailed, Job, PromptTooLong, QueueFull
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.scheduler import Work
from streamsieve.backends.local.sampling.parameters import SamplingParameters
from streamsieve.backends.local.sampling.token import Token

ROWS = 2


@dataclass
class Script:
    """Counts: the tokens of each row are 100, 101, ... `before` is called with each step's rows first."""

    before: Callable[[Sequence[Row]], None] = lambda rows: None
    places: set[Row] = field(default_factory=set)
    most: int = 0
    closed: bool = False
    rows: int = ROWS
    longest: int = 1000

    def admit(self, row: Row) -> bool:
        self.places.add(row)
        self.most = max(self.most, len(self.places))
        return True

    def prepare(self) -> Sequence[Row]:
        return []

    def held(self, row: Row) -> bool:
        return False

    def step(self, work: Work) -> Sequence[tuple[Row, Token]]:
        for chunk in work.chunks:
            chunk.row.stored += chunk.length
        self.before(work.ready)
        for row in work.ready:
            row.stored += 1
        return [(row, Token(100 + row.generated)) for row in work.ready if row.failure is None]

    def release(self, row: Row) -> None:
        self.places.remove(row)

    def close(self) -> None:
        self.closed = True

    @property
    def usage(self) -> Usage:
        return Usage(sum(row.stored for row in self.places), 2000)


def job(tokens: int = 3, stop: Sequence[int] = (), prompt: int = 4) -> Job:
    return Job(list(range(prompt)), SamplingParameters(), tokens, frozenset(stop))


@asynccontextmanager
async def running(*scripts: Script, queue: int = 1, patience: float = 60.0) -> AsyncIterator[Engine]:
    """An engine whose executors are `scripts`, one after the other; the last again and again."""
    left = list(scripts)
    engine = Engine(
        lambda: left.pop(0) if len(left) > 1 else left[0], longest=1000, rows=ROWS, queue=queue, patience=patience
    )
    engine.start()
    try:
        yield engine
    finally:
        await asyncio.to_thread(engine.stop)


async def ids(engine: Engine, job: Job) -> list[int]:
    return [token.id async for tokens in engine.generate(job) for token in tokens]


@pytest.mark.parametrize(
    ("job", "expected", "reason"),
    [
        pytest.param(job(3), [100, 101, 102], "length", id="max_tokens"),
        pytest.param(job(1), [100], "length", id="one token"),
        pytest.param(job(9, stop=[101]), [100, 101], "stop", id="the stop token is the last"),
        pytest.param(job(2, stop=[101]), [100, 101], "stop", id="stopped by the last one allowed"),
        pytest.param(job(900, prompt=998), [100, 101], "length", id="the longest sequence"),
        pytest.param(job(2, prompt=999), [100], "length", id="room for one"),
    ],
)
async def test_how_a_job_ends(job: Job, expected: list[int], reason: str) -> None:
    async with running(Script()) as engine:
        assert await ids(engine, job) == expected
    assert job.finish_reason == reason


@pytest.mark.parametrize("length", [1000, 5000])
async def test_a_prompt_that_leaves_no_room_is_refused(length: int) -> None:
    async with running(Script()) as engine:
        with pytest.raises(PromptTooLong) as caught:
            await ids(engine, job(prompt=length))
    assert (caught.value.length, caught.value.limit) == (length, 1000)


async def test_the_queue_has_a_limit_and_goes_on_after_it() -> None:
    gate = threading.Event()
    async with running(Script(before=lambda rows: gate.wait(10) and None)) as engine:
        taken = [asyncio.create_task(ids(engine, job())) for _ in range(ROWS + 1)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull) as caught:
            await ids(engine, job())
        assert 1 <= caught.value.retry_after <= 60
        gate.set()
        assert await asyncio.gather(*taken) == [[100, 101, 102]] * 3
        assert await ids(engine, job()) == [100, 101, 102]


async def test_no_more_run_than_there_are_rows() -> None:
    async with running(script := Script(), queue=50) as engine:
        await asyncio.gather(*(ids(engine, job(5)) for _ in range(20)))
        stats = engine.stats()
    assert script.most == ROWS
    assert (stats.finished, stats.generated_tokens, stats.prompt_tokens, stats.queued) == (20, 100, 60, 0)
    assert script.closed


async def test_who_stops_listening_is_cancelled_and_makes_room() -> None:
    async with running(script := Script(), queue=10) as engine:
        abandoned = [job(10**6) for _ in range(ROWS)]
        for each in abandoned:
            async with aclosing(engine.generate(each)) as tokens:
                await anext(tokens)
        assert await ids(engine, job()) == [100, 101, 102]  # else it would wait for ever
        assert engine.stats().queued == 0
    assert [each.finish_reason for each in abandoned] == ["cancelled"] * ROWS
    assert not script.places


async def test_a_waiting_job_can_be_cancelled() -> None:
    gate = threading.Event()
    seen: list[Row] = []

    def before(rows: Sequence[Row]) -> None:
        seen.extend(rows)
        gate.wait(10)

    async with running(Script(before=before), queue=1) as engine:
        jobs = [job() for _ in range(ROWS + 1)]
        tasks = [asyncio.create_task(ids(engine, each)) for each in jobs]
        await asyncio.sleep(0.01)
        tasks[-1].cancel()
        await asyncio.wait([tasks[-1]])
        gate.set()
        await asyncio.gather(*tasks[:-1])
    assert jobs[-1].finish_reason == "cancelled"
    assert all(row.job is not jobs[-1] for row in seen)


def raise_once(error: Exception) -> Callable[[Sequence[Row]], None]:
    errors: Iterator[Exception] = iter([error])

    def before(rows: Sequence[Row]) -> None:
        for each in errors:
            raise each

    return before


async def test_a_failed_step_ends_what_ran_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    broken, whole = Script(before=raise_once(RuntimeError("out of memory"))), Script()
    async with running(broken, whole, queue=5) as engine:
        results = await asyncio.gather(*(ids(engine, job()) for _ in range(5)), return_exceptions=True)
        assert engine.health is Health.READY
        assert engine.stats().failures == 1
    failed = [result for result in results if isinstance(result, EngineFailed)]
    assert 1 <= len(failed) <= ROWS
    assert "out of memory" in str(failed[0])
    assert [result for result in results if result not in failed] == [[100, 101, 102]] * (5 - len(failed))
    assert broken.closed
    assert "RuntimeError" in caplog.text


async def test_nothing_of_a_prompt_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def before(rows: Sequence[Row]) -> None:
        raise KeyError(rows[0])

    async with running(Script(before=before)) as engine:
        with pytest.raises(EngineFailed):
            await ids(engine, job(prompt=4))
    assert "KeyError" in caplog.text
    assert "0, 1, 2" not in caplog.text


async def test_an_engine_that_only_fails_is_dead(caplog: pytest.LogCaptureFixture) -> None:
    def fail(rows: Sequence[Row]) -> None:
        raise RuntimeError("broken")

    async with running(Script(before=fail), queue=50) as engine:
        results = await asyncio.gather(*(ids(engine, job()) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(result, EngineFailed) for result in results)
        assert engine.health is Health.DEAD
        assert engine.stats().failures == FAILURES
        with pytest.raises(EngineDead):
            await ids(engine, job())


async def test_failures_with_tokens_between_do_not_add_up(caplog: pytest.LogCaptureFixture) -> None:
    def fail_second(rows: Sequence[Row]) -> None:
        if any(row.generated == 1 for row in rows):
            raise RuntimeError("broken")

    async with running(Script(before=fail_second)) as engine:
        for _ in range(2 * FAILURES):
            with pytest.raises(EngineFailed):
                await ids(engine, job())
            assert await ids(engine, job(1)) == [100]


async def test_a_stuck_step_is_given_up_and_its_late_result_is_not_heard(caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()
    stuck = Script(before=lambda rows: gate.wait(10) and None)
    async with running(stuck, Script(), queue=5, patience=0.1) as engine:
        results = await asyncio.gather(*(ids(engine, job()) for _ in range(4)), return_exceptions=True)
        failed = [result for result in results if isinstance(result, EngineFailed)]
        assert len(failed) == ROWS
        assert [result for result in results if result not in failed] == [[100, 101, 102]] * 2
        gate.set()
        assert await ids(engine, job()) == [100, 101, 102]
        assert engine.stats().generated_tokens == 9
    assert "0.1 s" in caplog.text


async def test_an_executor_that_cannot_be_made_kills_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    def make() -> Script:
        raise MemoryError("no room")

    engine = Engine(make, longest=10, rows=1)
    engine.start()
    while engine.health is not Health.DEAD:
        await asyncio.sleep(0.001)
    with pytest.raises(EngineDead):
        await ids(engine, job())


class Bounds:
    """A constraint that is done after `length` tokens; of a negative one it cannot say when it is."""

    def __init__(self, length: int) -> None:
        self.left = length

    def forced(self) -> int | None:
        return None

    def fill(self, bitmask: Tensor, row: int) -> bool:
        return False

    def accept(self, token: int) -> None:
        raise NotImplementedError  # the executor's business

    @property
    def done(self) -> bool:
        if self.left < 0:
            raise RuntimeError("no such state")
        self.left -= 1
        return self.left == 0


async def test_a_constraint_that_is_done_ends_the_job() -> None:
    async with running(Script()) as engine:
        bound = job(50)
        bound.constraint = Bounds(2)
        assert await ids(engine, bound) == [100, 101]
    assert bound.finish_reason == "stop"


async def test_a_row_that_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    bad, good = job(5), job(5)

    def before(rows: Sequence[Row]) -> None:
        for row in rows:
            if row.job is bad and row.generated == 2:
                row.failure = ValueError("no such token")

    async with running(Script(before=before)) as engine:
        results = await asyncio.gather(ids(engine, bad), ids(engine, good), return_exceptions=True)
    assert isinstance(results[0], EngineFailed)
    assert results[1] == [100, 101, 102, 103, 104]
    assert (bad.finish_reason, good.finish_reason) == ("error", "length")
    assert "no such token" in caplog.text


@pytest.mark.parametrize("tokens", [50, 1])
async def test_a_constraint_that_cannot_say_whether_it_is_done_ends_its_job_alone(tokens: int) -> None:
    async with running(Script()) as engine:
        bound = job(tokens)
        bound.constraint = Bounds(-1)
        results = await asyncio.gather(ids(engine, bound), ids(engine, job(4)), return_exceptions=True)
    assert isinstance(results[0], EngineFailed)
    assert results[1] == [100, 101, 102, 103]


async def test_draining_lets_jobs_end_and_takes_no_more() -> None:
    gate = threading.Event()
    async with running(Script(before=lambda rows: gate.wait(10) and None)) as engine:
        task = asyncio.create_task(ids(engine, job()))
        await asyncio.sleep(0.01)
        draining = asyncio.create_task(engine.drain(10))
        await asyncio.sleep(0.01)
        assert engine.health is Health.DRAINING
        with pytest.raises(EngineDead, match="draining"):
            await ids(engine, job())
        gate.set()
        assert await task == [100, 101, 102]
        await draining
        assert engine.health is Health.DEAD


async def test_draining_gives_up_after_its_time() -> None:
    async with running(script := Script(before=lambda rows: time.sleep(0.001))) as engine:
        endless = job(10**9)
        task = asyncio.create_task(ids(engine, endless))
        await asyncio.sleep(0.01)
        await engine.drain(0.05)
        with pytest.raises(EngineDead):
            await task
    assert endless.finish_reason == "error"
    assert script.closed


async def test_an_idle_engine_takes_no_steps() -> None:
    steps: list[int] = []
    async with running(Script(before=lambda rows: steps.append(len(rows)))) as engine:
        await ids(engine, job())
        await asyncio.sleep(0.05)
        assert len(steps) == 3
        assert await ids(engine, job(1)) == [100]


def test_loops_that_are_gone_do_no_harm() -> None:
    """A loop that was closed in the middle of a job: the engine goes on for others."""
    gate = threading.Event()
    engine = Engine(lambda: Script(before=lambda rows: gate.wait(10) and None), longest=1000, rows=ROWS)
    engine.start()
    loop = asyncio.new_event_loop()
    tokens = engine.generate(job(1))
    waiting = loop.create_task(anext(tokens))
    loop.run_until_complete(asyncio.sleep(0.01))
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()
    gate.set()
    assert asyncio.run(ids(engine, job())) == [100, 101, 102]
    engine.stop()
