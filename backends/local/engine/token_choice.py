"""The tokens of one step: what the constraints allow, what the sampler takes, and telling the constraints of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.sampling.sampler import RowSampler, Sampler
from streamsieve.backends.local.sampling.token import Token


class TokenChoice:
    """Chooses for all rows of a step at once. A row whose constraint raises fails alone (`Row.failure`)."""

    def __init__(self, rows: int, vocabulary: int, device: torch.device) -> None:
        """`rows`: most of one step. `vocabulary`: the width of the logits."""
        self._sampler = Sampler(vocabulary)
        words, pinned = -(-vocabulary // 32), device.type == "cuda"
        self._bitmask = torch.full((rows, words), -1, dtype=torch.int32, pin_memory=pinned)

    def choose(self, rows: Sequence[Row], logits: Tensor) -> list[tuple[Row, Token]]:
        """A token for each of `rows`, whose `logits` [rows, vocabulary] are overwritten."""
        forced: dict[int, int] = {}
        masked = [False] * len(rows)
        for place, row in enumerate(rows):
            if row.job.constraint is not None:
                masked[place] = self._ask(row, place, forced)
        samplers = [_sampler(row) for row in rows]
        bitmask = self._bitmask[: len(rows)] if any(masked) else None
        tokens = self._sampler.sample(logits, samplers, bitmask, masked, forced)
        return [(row, token) for row, token in zip(rows, tokens, strict=True) if _accept(row, token)]

    def _ask(self, row: Row, place: int, forced: dict[int, int]) -> bool:
        """Whether the row's constraint has written its mask; or what it forces is put down."""
        assert row.job.constraint is not None
        try:
            token = row.job.constraint.forced()
            if token is None:
                return row.job.constraint.fill(self._bitmask, place)
            forced[place] = token
        except Exception as error:
            row.failure = error
        return False


def _sampler(row: Row) -> RowSampler:
    if row.sampler is None:
        row.sampler = RowSampler(row.job.sampling, row.job.prompt, row.job.stop_token_ids)
    return row.sampler


def _accept(row: Row, token: Token) -> bool:
    """Whether the row can have `token`."""
    if row.failure is not None:
        return False
    if row.sampler is not None and row.sampler.broken:
        row.failure = ArithmeticError("the model's scores are no numbers, or the constraint allows no token")
        return False
    if row.job.constraint is not None:
        try:
            row.job.constraint.accept(token.id)
        except Exception as error:
            row.failure = error
            return False
    return True
