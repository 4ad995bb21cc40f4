"""The log probabilities that the model itself gave, before anything was done to its logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from streamsieve.backends.local.sampling.candidates import top
from streamsieve.backends.local.sampling.token import Token


class OwnDistribution:
    """Made of a step's logits before they are edited; afterwards it makes `Token`s of the chosen ids."""

    def __init__(self, logits: Tensor, wanted: Sequence[int | None]) -> None:
        """`wanted`: the `logprobs` of each row's parameters. Rows with None cost nothing."""
        self._wanted = wanted
        self._places = [place for place, count in enumerate(wanted) if count is not None]
        self._top: list[list[tuple[int, float]]] = [[] for _ in self._places]
        if not self._places:
            return
        own = logits if len(self._places) == len(wanted) else logits[self._places]
        self._logprobs = own.log_softmax(dim=1)
        count = min(max(wanted[place] or 0 for place in self._places), logits.shape[1])
        if count:
            values, ids = top(self._logprobs, count)
            pairs = zip(ids.tolist(), values.tolist(), strict=True)
            self._top = [list(zip(row_ids, row_values, strict=True)) for row_ids, row_values in pairs]

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        """A token for each row."""
        tokens = [Token(id) for id in ids]
        if self._places:
            chosen = torch.tensor([[ids[place]] for place in self._places]).to(self._logprobs.device)
            logprobs = self._logprobs.gather(1, chosen).flatten().tolist()
            for place, logprob, best in zip(self._places, logprobs, self._top, strict=True):
                tokens[place].logprob = logprob
                tokens[place].top = best[: self._wanted[place]]
        return tokens
