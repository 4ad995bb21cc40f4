"""Which rows come in, and what a step reads and writes: tables, without a model."""

from __future__ import annotations

import pytest

from streamsieve.backends.local.engine.jobs import Job
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.scheduler import Scheduler
from streamsieve.backends.local.sampling.parameters import SamplingParameters


def row(length: int, stored: int = 0) -> Row:
    made = Row(Job(list(range(length)), SamplingParameters(), 10, frozenset()))
    made.stored = stored
    return made


def scheduler(*running: Row, rows: int = 8, chunk: int = 10, alone: int = 40) -> Scheduler:
    made = Scheduler(rows, chunk, alone)
    made.running.extend(running)
    return made


@pytest.mark.parametrize(
    ("missing", "writing", "expected"),
    [
        pytest.param([5], 1, {0: 5}, id="fits"),
        pytest.param([100], 1, {0: 10}, id="one alone takes the whole budget"),
        pytest.param([100], 0, {0: 40}, id="and more where nobody writes"),
        pytest.param([100, 100], 1, {0: 10}, id="of equals the first"),
        pytest.param([100, 3, 50], 1, {0: 5, 1: 3, 2: 2}, id="half for the oldest, then the shortest"),
        pytest.param([100, 50, 3, 2], 1, {0: 5, 2: 3, 3: 2}, id="and no more than there is"),
        pytest.param([2, 100], 1, {0: 2, 1: 8}, id="what the oldest leaves"),
        pytest.param([], 3, {}, id="nothing to read"),
    ],
)
def test_chunks(missing: list[int], writing: int, expected: dict[int, int]) -> None:
    unread = [row(length + 1) for length in missing]
    work = scheduler(*unread, *(row(5, stored=4) for _ in range(writing))).plan()
    assert {unread.index(chunk.row): chunk.length for chunk in work.chunks} == expected


def test_a_row_whose_prompt_is_read_writes_in_the_same_step() -> None:
    whole, part, ready, single = row(8), row(50), row(20, stored=19), row(1)
    work = scheduler(whole, part, ready, single, chunk=10).plan()
    assert set(work.ready) == {whole, ready, single}
    assert part not in work.ready


def test_a_held_row_is_not_read() -> None:
    leader, held = row(30), row(3)
    work = scheduler(leader, held).plan(lambda each: each is held)
    assert [chunk.row for chunk in work.chunks] == [leader]
    assert held not in work.ready


def test_first_come_first_served_and_nobody_overtakes() -> None:
    subject = scheduler(rows=2)
    first, second, third = rows = [row(3), row(500), row(3)]
    for each in rows:
        subject.add(each)
    assert subject.admit(lambda each: len(each.tokens) < 100) == [first]
    assert list(subject.waiting) == [second, third]
    assert subject.admit(lambda each: True) == [second]  # two at once, no more
    assert subject.remove(first)
    assert subject.admit(lambda each: True) == [third]


def test_who_had_to_leave_comes_back_first() -> None:
    subject = scheduler(rows=2)
    early, late, waiting = row(3), row(3, stored=2), row(3)
    for each in (early, late, waiting):
        subject.add(each)
    subject.admit(lambda each: True)
    subject.put_back(late)
    assert (late.stored, list(subject.waiting)) == (0, [late, waiting])


def test_remove_says_whether_the_row_ran() -> None:
    subject = scheduler(running := row(3))
    subject.add(waiting := row(3))
    assert [subject.remove(each) for each in (running, waiting, row(3))] == [True, False, False]
    assert not subject.running
    assert not subject.waiting
