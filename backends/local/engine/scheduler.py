"""What the next step of the model does: which rows come in, which part of their prompts is read, which rows write."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from streamsieve.backends.local.engine.row import Row


@dataclass(frozen=True, slots=True)
class Chunk:
    """The `length` tokens of a row from `row.stored` on, to be read in one step."""

    row: Row
    length: int


@dataclass(frozen=True, slots=True)
class Work:
    """One step: `chunks` are read first, then each of `ready` gets a token (rows that the chunks made ready too)."""

    chunks: Sequence[Chunk]
    ready: Sequence[Row]


@dataclass(slots=True)
class Scheduler:
    """The rows of one executor, first come first served.

    `rows`: how many run at once. `chunk`: tokens of prompts read in a step beside rows that write, which wait for
    it. Where none writes, `alone` may be read, so that a step stays short enough for newcomers and cancels.
    """

    rows: int
    chunk: int
    alone: int
    waiting: deque[Row] = field(default_factory=deque)
    running: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Queue `row` behind the others."""
        self.waiting.append(row)

    def put_back(self, row: Row) -> None:
        """A running row goes back to the head of the queue, since the memory does not hold it."""
        self.running.remove(row)
        row.stored = 0
        self.waiting.appendleft(row)

    def remove(self, row: Row) -> bool:
        """Forget `row`; whether it was running."""
        if row in self.running:
            self.running.remove(row)
            return True
        if row in self.waiting:
            self.waiting.remove(row)
        return False

    def admit(self, take: Callable[[Row], bool]) -> list[Row]:
        """Move rows from the queue to the running ones while there is room and `take` (the executor) accepts.

        The head is never overtaken, so that a long row is not starved by short ones.
        """
        admitted = []
        while self.waiting and len(self.running) < self.rows and take(self.waiting[0]):
            row = self.waiting.popleft()
            self.running.append(row)
            admitted.append(row)
        return admitted

    def plan(self, held: Callable[[Row], bool] = lambda row: False) -> Work:
        """The next step. A row that is `held` waits for another row's prompt, which it shares."""
        unread = [row for row in self.running if row.missing > 0]
        writing = [row for row in self.running if row.missing == 0]
        budget = self.chunk if writing else self.alone
        chunks = _divide([row for row in unread if not held(row)], budget)
        finished = [chunk.row for chunk in chunks if chunk.length == chunk.row.missing]
        return Work(chunks, [*writing, *finished])


def _divide(unread: Sequence[Row], budget: int) -> list[Chunk]:
    """Half of the budget for the row that came first, so that it gets through; the rest for those with least to
    read, so that a short prompt does not wait for a long one."""
    if not unread:
        return []
    oldest = unread[0]
    lengths = {id(oldest): min(oldest.missing, -(-budget // 2))}
    left = budget - lengths[id(oldest)]
    for row in sorted(unread, key=lambda row: row.missing):
        had = lengths.get(id(row), 0)
        more = min(row.missing - had, left)
        if more > 0:
            lengths[id(row)] = had + more
            left -= more
    return [Chunk(row, lengths[id(row)]) for row in unread if id(row) in lengths]
