"""The thread that does all model work: one executor, its scheduler, and a loop of steps."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from streamsieve.backends.local.engine.executor import Executor, Usage
from streamsieve.backends.local.engine.jobs import FinishReason
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.scheduler import Scheduler
from streamsieve.backends.local.sampling.token import Token

Command = tuple[Literal["add", "cancel"], Row]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step gave one row; `finish` where it was its last."""

    row: Row
    tokens: Sequence[Token]
    finish: FinishReason | None = None


class Worker:
    """Runs steps while there are rows, sleeps while there are none.

    `report` gets what each step gave, on the worker's thread, and says whether the worker goes on; `fail` gets
    what a step raised, and the worker ends. One that is stuck in a step cannot be stopped: `report` turns it away
    when it comes back.
    """

    def __init__(
        self,
        executor: Callable[[], Executor],
        *,
        chunk: int,
        alone: int,
        report: Callable[[Worker, Sequence[Outcome]], bool],
        fail: Callable[[Worker, Exception], None],
    ) -> None:
        self._make_executor = executor
        self._chunk, self._alone = chunk, alone
        self._report, self._fail = report, fail
        self._commands: deque[Command] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._usage = Usage(0, 0)
        self.step_started: float | None = None
        """`time.monotonic()` when the step that runs now began; None between steps."""
        self.running = 0
        self.prefilled = 0
        """Tokens of prompts read so far."""
        self.thread = threading.Thread(target=self._run, name="streamsieve-engine", daemon=True)

    @property
    def usage(self) -> Usage:
        """How full the cache was after the last step."""
        return self._usage

    def send(self, *commands: Command) -> None:
        """Have `commands` done before the next step. From any thread."""
        with self._wake:
            self._commands.extend(commands)
            self._wake.notify()

    def stop(self) -> None:
        """End after the step that runs now, whatever is left. From any thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    def _run(self) -> None:
        error = self._work()
        self.step_started = None
        if error is not None:
            self._fail(self, error)

    def _work(self) -> Exception | None:
        """Take steps until there is a reason not to; what a step raised. The executor is closed before a successor is
        called for: they may not fit into the memory together."""
        self.step_started = time.monotonic()
        try:
            with torch.inference_mode(), closing(self._make_executor()) as executor:
                self._take_steps(executor)
        except Exception as error:
            traceback.clear_frames(error.__traceback__)  # they hold tensors
            return error
        return None

    def _take_steps(self, executor: Executor) -> None:
        scheduler = Scheduler(executor.rows, self._chunk, self._alone)
        self.step_started = None
        while self._obey(scheduler, executor):
            self.step_started = time.monotonic()
            outcomes = self._step(scheduler, executor)
            self.step_started = None
            self.running, self._usage = len(scheduler.running), executor.usage
            if not self._report(self, outcomes):
                return

    def _obey(self, scheduler: Scheduler, executor: Executor) -> bool:
        """Do what was sent, waiting for it while there is no work; False: the worker shall end."""
        with self._wake:
            while not self._stopping and not self._commands and not scheduler.running and not scheduler.waiting:
                self.running, self._usage = 0, executor.usage
                self._wake.wait()
            commands = list(self._commands)
            self._commands.clear()
        for verb, row in commands:
            if verb == "add":
                scheduler.add(row)
            elif scheduler.remove(row):
                executor.release(row)
        return not self._stopping

    def _step(self, scheduler: Scheduler, executor: Executor) -> list[Outcome]:
        for row in executor.prepare():
            scheduler.put_back(row)
        scheduler.admit(partial(_admit, executor))
        work = scheduler.plan(executor.held)
        if not work.chunks and not work.ready:
            return []
        self.prefilled += sum(chunk.length for chunk in work.chunks)
        outcomes = [_take(row, token, executor.longest) for row, token in executor.step(work)]
        outcomes += [Outcome(row, [], "error") for row in scheduler.running if row.failure is not None]
        for outcome in outcomes:
            if outcome.finish is not None:
                scheduler.remove(outcome.row)
                executor.release(outcome.row)
        return outcomes


def _admit(executor: Executor, row: Row) -> bool:
    before, row.admitted = row.admitted, True  # first, so that a row which breaks the executor is known by it
    taken = executor.admit(row)
    row.admitted = before or taken
    return taken


def _take(row: Row, token: Token, longest: int) -> Outcome:
    job = row.job
    row.tokens.append(token.id)
    finish: FinishReason | None = None
    if token.id in job.stop_token_ids or _is_done(row):
        finish = "stop"
    elif row.failure is None and (row.generated >= job.max_tokens or len(row.tokens) >= longest):
        finish = "length"
    return Outcome(row, [token], finish)


def _is_done(row: Row) -> bool:
    try:
        return row.job.constraint is not None and row.job.constraint.done
    except Exception as error:  # as anything that a constraint raises, it ends its own row alone
        row.failure = error
        return False
