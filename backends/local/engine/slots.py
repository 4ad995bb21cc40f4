"""Which row is in which slot, what idle slots still know, and how large the buffers are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from streamsieve.backends.common_beginning import common_beginning
from streamsieve.backends.local.engine.executor import Usage
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.slot_cache import STEP, SlotCache, round_up

_FIRST_POSITIONS, _FIRST_SLOTS = 256, 8
_SMALLEST_REUSE = 16  # tokens; a shorter common beginning is not worth a copy


@dataclass(slots=True, eq=False)
class _Slot:
    """`row`: who runs here. `tokens`: what is stored where nobody does."""

    row: Row | None = None
    tokens: Sequence[int] = ()
    left: int = 0

    @property
    def known(self) -> Sequence[int]:
        """Tokens of which the first `stored` are in the buffers."""
        return self.tokens if self.row is None else self.row.tokens

    @property
    def stored(self) -> int:
        return len(self.tokens) if self.row is None else self.row.stored


class Slots:
    """Places rows in a cache that holds so many positions in all as `cache_bytes` allow.

    A slot that its row has left stays as it is until another needs it, and a new row takes over the longest
    beginning that any slot shares with its prompt. Raises ValueError where one `longest` sequence does not fit.
    """

    def __init__(self, cache: SlotCache, *, rows: int, longest: int, cache_bytes: int) -> None:
        self.rows = rows
        self._cache = cache
        self._longest = longest
        self._capacity = cache_bytes // cache.position_bytes
        if self._capacity < round_up(longest):
            raise ValueError(
                f"{cache_bytes / 2**20:.0f} MiB hold {self._capacity} positions, one sequence has up to {longest}"
            )
        self._slots: list[_Slot] = []
        self._places: dict[Row, int] = {}
        self._leaders: dict[Row, Row] = {}
        self._clock = itertools.count(1)

    @property
    def usage(self) -> Usage:
        """Positions that running rows fill, of those that there may be."""
        filled = sum(row.stored for row in list(self._places))
        return Usage(filled, min(self._capacity, self.rows * round_up(self._longest)))

    def place(self, row: Row) -> int:
        """The slot that `row` is in."""
        return self._places[row]

    def follows(self, row: Row) -> bool:
        """Whether `row` waits for what another row is reading."""
        return row in self._leaders

    def admit(self, row: Row) -> bool:
        """Give `row` a slot, with the longest beginning that is known; False where the memory does not suffice."""
        running = len(self._places) + 1
        needed = max(len(each.tokens) for each in (row, *self._places)) + 1
        if running * round_up(needed) > self._capacity and self._places:
            return False
        self._fit(running, needed)
        shared, source = self._longest_known(row)
        place = self._choose(source, shared)
        if place != source and shared >= _SMALLEST_REUSE:
            self._cache.copy(source, place, shared)
        elif place != source:
            shared = 0
        self._slots[place] = _Slot(row)
        self._places[row] = place
        _knows(row, shared)
        self._follow(row, shared)
        return True

    def _longest_known(self, row: Row) -> tuple[int, int]:
        """How many of the row's tokens a slot has stored, at most all but the last, and which slot."""
        common = [min(common_beginning(slot.known, row.tokens), slot.stored) for slot in self._slots]
        shared = max(common)
        return min(shared, len(row.tokens) - 1), common.index(shared)

    def _choose(self, source: int, shared: int) -> int:
        """A free slot: the source itself if little else is in it, else the one that was left first."""
        slot = self._slots[source]
        if slot.row is None and 2 * shared >= slot.stored:
            return source
        free = [place for place, slot in enumerate(self._slots) if slot.row is None]
        return min((place for place in free if place != source or len(free) == 1), key=lambda p: self._slots[p].left)

    def _follow(self, row: Row, shared: int) -> None:
        """Let `row` wait for another that is still reading a longer common beginning."""
        best = max(shared, _SMALLEST_REUSE - 1)
        for other in self._places:
            if other is not row and other.missing > 0 and other not in self._leaders:
                common = min(common_beginning(other.tokens, row.tokens), len(other.tokens) - 1, len(row.tokens) - 1)
                if common > best:
                    best, self._leaders[row] = common, other

    def prepare(self) -> list[Row]:
        """Room for the next token of each row; the rows, newest first, that had to leave for it."""
        left = []
        while self._places and not self._fits():
            row = next(reversed(self._places))
            self.release(row)
            left.append(row)
        for row, leader in list(self._leaders.items()):
            self._catch_up(row, leader)
        return left

    def _fits(self) -> bool:
        needed = max(len(row.tokens) for row in self._places)
        if len(self._places) * round_up(needed) > self._capacity:
            return False
        self._fit(len(self._places), needed)
        return True

    def _catch_up(self, row: Row, leader: Row) -> None:
        """Take over what `leader` has read, once that is all that they share, or it has left."""
        common = min(common_beginning(leader.tokens, row.tokens), len(leader.tokens) - 1)
        if leader in self._places and leader.stored < common:
            return
        del self._leaders[row]
        shared, source = self._longest_known(row)
        if shared > row.stored:
            self._cache.copy(source, self._places[row], shared)
            _knows(row, shared)

    def release(self, row: Row) -> None:
        """`row` leaves its slot, which keeps what is stored."""
        place = self._places.pop(row)
        self._leaders.pop(row, None)
        self._slots[place] = _Slot(tokens=row.tokens[: row.stored], left=next(self._clock))

    def arrange(self, rows: Sequence[Row]) -> list[Row]:
        """Move `rows` to the first slots; in the order of their slots."""
        wanted = set(rows)
        front = len(rows)
        holes = [place for place in range(front) if self._slots[place].row not in wanted]
        strays = [place for row in rows if (place := self._places[row]) >= front]
        for hole, stray in zip(holes, strays, strict=True):
            self._swap(hole, stray)
        return [row for slot in self._slots[:front] if (row := slot.row) is not None]

    def _swap(self, one: int, other: int) -> None:
        slots = self._slots
        self._cache.swap(one, other, slots[one].stored, slots[other].stored)
        slots[one], slots[other] = slots[other], slots[one]
        for place in (one, other):
            if (row := slots[place].row) is not None:
                self._places[row] = place

    def _fit(self, running: int, needed: int) -> None:
        """Buffers for `running` rows of `needed` positions, and as many slots again, so far as there is memory.

        Both grow by doubling: one long row does not make as much room for all that might come.
        """
        cache = self._cache
        if running <= cache.slots and needed <= cache.positions:
            return
        wish = max(_FIRST_POSITIONS, cache.positions if needed <= cache.positions else 2 * cache.positions)
        affordable = self._capacity // running // STEP * STEP
        positions = max(round_up(needed), min(wish, affordable, round_up(self._longest)))
        count = min(self.rows, self._capacity // positions, max(_FIRST_SLOTS, 2 * running))
        order = [place for place, slot in enumerate(self._slots) if slot.row is not None]
        idle = [place for place, slot in enumerate(self._slots) if slot.row is None]
        order += sorted(idle, key=lambda place: -self._slots[place].left)[: count - len(order)]
        lengths = [min(self._slots[place].stored, positions) for place in order]
        cache.resize(order, count, positions, lengths)
        self._slots = [self._slots[place] for place in order]
        for slot in self._slots:
            slot.tokens = slot.tokens[:positions]
        self._slots += [_Slot() for _ in range(count - len(order))]
        self._places.update({slot.row: place for place, slot in enumerate(self._slots) if slot.row is not None})

    def clear(self) -> None:
        """Give the buffers back. No row may be running."""
        self._cache.resize([], 0, 0, [])
        self._slots.clear()


def _knows(row: Row, shared: int) -> None:
    row.stored = shared
    if row.generated == 0:  # what a row itself had read before it had to leave does not count
        row.job.cached_tokens = shared
