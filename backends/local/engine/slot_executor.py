"""Runs rows on a slot cache: prompts are read in packed chunks, all rows that write go through the model at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from streamsieve.backends.local.engine.executor import Usage
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.scheduler import Chunk, Work
from streamsieve.backends.local.engine.slot_cache import LayerShape, Segment, SlotCache
from streamsieve.backends.local.engine.slot_calls import SlotCalls
from streamsieve.backends.local.engine.slots import Slots
from streamsieve.backends.local.engine.token_choice import TokenChoice
from streamsieve.backends.local.model.loading import LocalModel
from streamsieve.backends.local.sampling.token import Token

_PACKED_PREFIX = 1024
"""Stored tokens that the chunks of one call bring along at most: attention looks at all for each new token."""


class SlotExecutor:
    """An `Executor` (see there). `shapes`: what the layers of `model` store. `rows`: how many run at once.

    `cache_bytes`: for keys and values. Raises ValueError where that does not hold one longest sequence.
    """

    def __init__(
        self,
        model: LocalModel,
        shapes: Sequence[LayerShape],
        *,
        rows: int,
        cache_bytes: int,
    ) -> None:
        self._model = model
        self._cache = SlotCache(shapes)
        self._slots = Slots(self._cache, rows=rows, longest=model.longest, cache_bytes=cache_bytes)
        self._calls = SlotCalls(model, self._cache)
        self._choice = TokenChoice(rows, model.vocabulary, model.device)

    @property
    def rows(self) -> int:
        return self._slots.rows

    @property
    def longest(self) -> int:
        return self._model.longest

    @property
    def usage(self) -> Usage:
        return self._slots.usage

    def admit(self, row: Row) -> bool:
        return self._slots.admit(row)

    def prepare(self) -> Sequence[Row]:
        return self._slots.prepare()

    def held(self, row: Row) -> bool:
        return self._slots.follows(row)

    def release(self, row: Row) -> None:
        self._slots.release(row)

    def close(self) -> None:
        self._slots.clear()
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()

    def step(self, work: Work) -> Sequence[tuple[Row, Token]]:
        for chunks in _packed(work.chunks):
            self._prefill(chunks)
        if not work.ready:
            return []
        rows = self._slots.arrange(work.ready)
        return self._choice.choose(rows, self._decode(rows))

    def _prefill(self, chunks: Sequence[Chunk]) -> None:
        segments = [Segment(self._slots.place(chunk.row), chunk.row.stored, chunk.length) for chunk in chunks]
        self._calls.prefill(segments, [chunk.row.tokens for chunk in chunks])
        for chunk in chunks:
            chunk.row.stored += chunk.length

    def _decode(self, rows: Sequence[Row]) -> Tensor:
        logits = self._calls.decode([row.tokens[-1] for row in rows], [row.stored for row in rows])
        for row in rows:
            row.stored += 1
        return logits


def _packed(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """`chunks` by calls: those without anything stored together, others while they bring little along."""
    calls: list[list[Chunk]] = []
    prefix = _PACKED_PREFIX
    for chunk in sorted(chunks, key=lambda chunk: chunk.row.stored):
        prefix += chunk.row.stored
        if (prefix > _PACKED_PREFIX and chunk.row.stored) or not calls:
            calls.append([])
            prefix = chunk.row.stored
        calls[-1].append(chunk)
    return calls
