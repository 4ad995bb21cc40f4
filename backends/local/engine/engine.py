"""Many replies at once from one model: admission, tokens to whoever waits for them, and what happens when it fails."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from streamsieve.backends.local.engine.executor import Executor
from streamsieve.backends.local.engine.jobs import EngineDead, EngineFailed, Job, PromptTooLong, QueueFull
from streamsieve.backends.local.engine.mailbox import Delivery, Mailbox, deliver
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.stats import Counts, Stats
from streamsieve.backends.local.engine.worker import Outcome, Worker
from streamsieve.backends.local.sampling.token import Token

logger = logging.getLogger(__name__)

FAILURES = 3
"""So many failed steps in a row, with no token between them, and the engine is dead."""


class Health(Enum):
    """What becomes of a job that is sent now."""

    NEW = "new"
    READY = "ready"
    DRAINING = "draining"
    DEAD = "dead"


@dataclass(slots=True, eq=False)
class _Entry:
    """A job that has not ended, and who waits for it."""

    row: Row
    mailbox: Mailbox
    since: float


class Engine:
    """Runs jobs on a thread of its own.

    `executor` makes what runs the model; it is called on that thread, and again after a failure. `longest`: tokens
    of prompt and reply together. `rows`: jobs that run at once; `queue`: jobs that may wait beside them. `chunk`:
    tokens of prompts read in a step beside rows that write, `chunk_alone` where none does. A step of more than
    `patience` seconds counts as failed; it is generous, since the first one may have to warm up.
    """

    def __init__(
        self,
        executor: Callable[[], Executor],
        *,
        longest: int,
        rows: int,
        queue: int = 256,
        chunk: int = 256,
        chunk_alone: int = 1024,
        patience: float = 300.0,
    ) -> None:
        self._executor = executor
        self._longest, self._rows, self._queue = longest, rows, queue
        self._chunk, self._chunk_alone, self._patience = chunk, chunk_alone, patience
        self._changed = threading.Condition()
        self._health = Health.NEW
        self._jobs: dict[Job, _Entry] = {}
        self._worker: Worker | None = None
        self._failures_in_a_row = 0
        self._counts = Counts()

    @property
    def health(self) -> Health:
        """Whether jobs are taken."""
        return self._health

    @property
    def longest(self) -> int:
        """Tokens that prompt and reply may have together."""
        return self._longest

    def start(self) -> None:
        """Start the thread. Once only: an engine that has stopped stays so."""
        with self._changed:
            if self._health is not Health.NEW:
                raise EngineDead("the engine was started before")
            self._health = Health.READY
            self._hire([])
        threading.Thread(target=self._watch, name="streamsieve-watchdog", daemon=True).start()

    async def generate(self, job: Job) -> AsyncGenerator[Sequence[Token], None]:
        """The tokens of `job`, those of one step or of several at a time; the job ends with the iteration.

        The first `anext` admits the job or raises QueueFull, PromptTooLong or EngineDead. EngineFailed comes where
        the engine failed under the job. Close the iterator (`contextlib.aclosing`) to cancel at the next step.
        """
        entry = self._admit(job, asyncio.get_running_loop())
        try:
            while tokens := await entry.mailbox.take():
                yield tokens
        finally:
            self._cancel(entry)

    async def drain(self, seconds: float) -> None:
        """Take no more jobs, wait at most `seconds` for those that are there, end the rest, and stop."""
        with self._changed:
            if self._health is Health.READY:
                self._health = Health.DRAINING
        await asyncio.to_thread(self._wait_until_empty, seconds)
        await asyncio.to_thread(self.stop)

    def stop(self) -> None:
        """End every job with EngineDead, and the thread with its step. Waits for the thread, a few seconds at most."""
        with self._changed:
            worker = self._worker
            endings = self._die(EngineDead("the engine is stopping"))
        deliver(endings)
        if worker is not None:
            worker.thread.join(5.0)

    def stats(self) -> Stats:
        """The engine's numbers. From any thread."""
        with self._changed:
            worker, counts = self._worker, self._counts
            running = 0 if worker is None else worker.running
            return Stats(
                queued=max(0, len(self._jobs) - running),
                running=running,
                generated_tokens=counts.generated,
                prompt_tokens=counts.prompts + (0 if worker is None else worker.prefilled),
                cached_tokens=counts.cached,
                tokens_per_second=counts.rate(time.monotonic()),
                cache_filled=0 if worker is None else worker.usage.filled,
                cache_capacity=0 if worker is None else worker.usage.capacity,
                finished=counts.finished,
                failures=counts.failures,
            )

    def _admit(self, job: Job, loop: asyncio.AbstractEventLoop) -> _Entry:
        if len(job.prompt) >= self._longest:
            raise PromptTooLong(len(job.prompt), self._longest)
        entry = _Entry(Row(job), Mailbox(loop), time.monotonic())
        with self._changed:
            if self._health is not Health.READY or self._worker is None:
                raise EngineDead(f"the engine takes no jobs: it is {self._health.value}")
            if len(self._jobs) >= self._rows + self._queue:
                wait = self._counts.seconds_per_job * self._queue / self._rows
                raise QueueFull(min(60, max(1, math.ceil(wait))))
            self._jobs[job] = entry
            self._changed.notify_all()
            self._worker.send(("add", entry.row))
        return entry

    def _cancel(self, entry: _Entry) -> None:
        """End the job of `entry` unless it has ended."""
        with self._changed:
            if self._jobs.get(entry.row.job) is not entry:
                return
            entry.row.job.finish_reason = "cancelled"
            self._forget(entry)
            if self._worker is not None:
                self._worker.send(("cancel", entry.row))

    def _forget(self, entry: _Entry) -> None:
        del self._jobs[entry.row.job]
        if not self._jobs:
            self._changed.notify_all()

    def _report(self, worker: Worker, outcomes: Sequence[Outcome]) -> bool:
        """Deliver what a step gave; False to a worker that was given up."""
        deliveries = []
        with self._changed:
            if worker is not self._worker:
                return False
            now = time.monotonic()
            for outcome in outcomes:
                if (entry := self._jobs.get(outcome.row.job)) is not None and entry.row is outcome.row:
                    deliveries.append(self._delivery(entry, outcome, now))
            if outcomes:
                self._counts.step(now, sum(len(outcome.tokens) for outcome in outcomes))
                self._failures_in_a_row = 0
        deliver(deliveries)
        return True

    def _delivery(self, entry: _Entry, outcome: Outcome, now: float) -> Delivery:
        row, finish = entry.row, outcome.finish
        if row.generated == 1:
            self._counts.cached += row.job.cached_tokens
        if finish is None:
            return Delivery(entry.mailbox, outcome.tokens)
        row.job.finish_reason = finish
        self._forget(entry)
        self._counts.job(now - entry.since)
        if row.failure is None:
            return Delivery(entry.mailbox, outcome.tokens, ended=True)
        logger.error("a reply failed: %s: %s", type(row.failure).__name__, row.failure, exc_info=row.failure)
        failure = EngineFailed(f"the constraint failed: {row.failure}")
        return Delivery(entry.mailbox, outcome.tokens, ended=True, failure=failure)

    def _fail(self, worker: Worker, error: Exception) -> None:
        """End the jobs that ran on `worker`; those that waited go to a new one, unless it failed too often."""
        with self._changed:
            if worker is not self._worker:
                return
            logger.error("the engine failed: %s: %s", type(error).__name__, error, exc_info=error)
            self._counts.failures += 1
            self._failures_in_a_row += 1
            worker.stop()
            if self._failures_in_a_row >= FAILURES:
                endings = self._die(EngineFailed(f"the engine failed {FAILURES} times in a row: {error}"))
            else:
                began = [entry for entry in self._jobs.values() if entry.row.admitted]
                endings = [self._end(entry, EngineFailed(f"the engine failed: {error}")) for entry in began]
                self._hire(list(self._jobs.values()))
        deliver(endings)

    def _end(self, entry: _Entry, failure: Exception) -> Delivery:
        entry.row.job.finish_reason = "error"
        self._forget(entry)
        return Delivery(entry.mailbox, ended=True, failure=failure)

    def _hire(self, entries: Sequence[_Entry]) -> None:
        """A new worker, which begins with `entries`. Their rows are new too: the old worker may still hold theirs."""
        if self._worker is not None:
            self._counts.prompts += self._worker.prefilled
        worker = Worker(
            self._executor, chunk=self._chunk, alone=self._chunk_alone, report=self._report, fail=self._fail
        )
        for entry in entries:
            entry.row = Row(entry.row.job)
            worker.send(("add", entry.row))
        self._worker = worker
        worker.thread.start()

    def _die(self, failure: Exception) -> list[Delivery]:
        self._health = Health.DEAD
        if self._worker is not None:
            self._worker.stop()
            self._worker = None
        endings = [self._end(entry, failure) for entry in list(self._jobs.values())]
        self._changed.notify_all()
        return endings

    def _wait_until_empty(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs, seconds)

    def _watch(self) -> None:
        """Give up a worker whose step takes too long. Sleeps while there are no jobs."""
        while self._health is not Health.DEAD:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._health is Health.DEAD)
                self._changed.wait_for(lambda: self._health is Health.DEAD, self._patience / 4)
                worker = self._worker
            started = None if worker is None else worker.step_started
            if worker is not None and started is not None and time.monotonic() - started > self._patience:
                self._fail(worker, TimeoutError(f"a step took more than {self._patience:g} s"))
