"""One step's tokens for all rows of a batch, each row by the parameters of its own request.

A row pays for what it asks. Greedy rows take a maximum. Sampled rows with `top_p` or `top_k` take their
highest logits (`candidates`), and rows without either are drawn from the whole distribution without
sorting it. Penalties and bias touch single tokens (`logit_edits`). The vocabulary is never sorted, but for
a row whose nucleus is wider than any number of candidates that is cheaper than sorting.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import torch
import xgrammar
from torch import Tensor

from streamsieve.backends.local.sampling.candidates import highest
from streamsieve.backends.local.sampling.draw import NO_TOKEN, Draws, draw_from_all, draw_from_top
from streamsieve.backends.local.sampling.logit_edits import LogitEdits, apply_edits
from streamsieve.backends.local.sampling.own_distribution import OwnDistribution
from streamsieve.backends.local.sampling.parameters import SamplingParameters
from streamsieve.backends.local.sampling.token import Token

__all__ = ["RowSampler", "Sampler", "SamplingParameters"]

_COUNTS = (32, 128, 2048)
"""Candidates that are tried before the whole row is sorted. They depend on nothing but the row, so that its
token does not depend on others."""

_NUCLEUS = 128
"""Of these, where a row begins that has no `top_k`."""

_ALL = 0
"""Instead of a count: all tokens, in the order of their ids."""


class RowSampler:
    """What sampling remembers of one reply: its random numbers, what it penalises, how many tokens it has."""

    __slots__ = ("_random", "broken", "edits", "generated", "parameters", "stop_token_ids")

    def __init__(
        self, parameters: SamplingParameters, prompt: Iterable[int] = (), stop_token_ids: frozenset[int] = frozenset()
    ) -> None:
        """`prompt`: its token ids, for `repetition_penalty`. `stop_token_ids`: what `min_tokens` bars."""
        self.parameters = parameters
        self.stop_token_ids = stop_token_ids
        self.edits = LogitEdits(parameters, prompt)
        self.generated = 0
        self.broken = False
        """Set where the row's logits were no numbers, or allowed no token: the token then given means nothing."""
        self._random = random.Random(parameters.seed)

    @property
    def may_not_stop(self) -> bool:
        """Whether `min_tokens` bars the tokens that stop."""
        return self.generated < self.parameters.min_tokens

    def uniform(self) -> float:
        """The next random number of this reply, from 0 up to but not 1."""
        return self._random.random()

    def record(self, token: int) -> None:
        """Take a token of the reply into account. `Sampler.sample` does it for those that it returns."""
        self.generated += 1
        self.edits.record(token)


class Sampler:
    """Chooses the tokens of one step. Holds nothing of the requests: these are in their `RowSampler`s."""

    def __init__(self, vocabulary: int) -> None:
        """`vocabulary`: tokens that may come; logits beyond it are padding of the model's and never do."""
        self._vocabulary = vocabulary
        self._counts = [count for count in _COUNTS if count < vocabulary] + [vocabulary]

    def sample(
        self,
        logits: Tensor,
        rows: Sequence[RowSampler],
        bitmask: Tensor | None = None,
        masked: Sequence[bool] = (),
        forced: Mapping[int, int] | None = None,
    ) -> list[Token]:
        """One token for each row of `logits` [rows, vocabulary], which are overwritten.

        `bitmask` [rows, vocabulary / 32], on the CPU: the tokens that a grammar allows, in the rows where
        `masked` says so. `min_tokens` is without effect where the grammar allows nothing but to stop.
        `forced`: row → a token that has to come there; no number is drawn for it.
        """
        logits = logits[:, : self._vocabulary].float()
        forced = forced or {}
        model = OwnDistribution(logits, [row.parameters.logprobs for row in rows])
        self._restrict(logits, rows, bitmask, masked)
        free = [place for place in range(len(rows)) if place not in forced]
        apply_edits(logits, {place: rows[place].edits for place in free})
        ids = dict(forced)
        self._choose(logits, rows, [place for place in free if rows[place].parameters.greedy], ids)
        self._draw(logits, rows, [place for place in free if not rows[place].parameters.greedy], ids)
        for place in free:
            if ids[place] == NO_TOKEN:
                rows[place].broken = True
                ids[place] = min(rows[place].stop_token_ids, default=0)
        for place, row in enumerate(rows):
            row.record(ids[place])
        return model.tokens([ids[place] for place in range(len(rows))])

    def _restrict(
        self, logits: Tensor, rows: Sequence[RowSampler], bitmask: Tensor | None, masked: Sequence[bool]
    ) -> None:
        """Bar what the grammars and `min_tokens` do not allow."""
        bound = [place for place, is_bound in enumerate(masked) if is_bound]
        for place, row in enumerate(rows):
            if not row.may_not_stop:
                continue
            if place in bound:
                assert bitmask is not None
                _bar(bitmask[place], row.stop_token_ids, self._vocabulary)
            else:
                logits[place, [token for token in row.stop_token_ids if token < self._vocabulary]] = -torch.inf
        if bound and bitmask is not None:
            xgrammar.apply_token_bitmask_inplace(
                logits, bitmask.to(logits.device, non_blocking=True), vocab_size=self._vocabulary, indices=bound
            )

    def _choose(self, logits: Tensor, rows: Sequence[RowSampler], places: Sequence[int], ids: dict[int, int]) -> None:
        """Put the likeliest token of each of `places` into `ids`."""
        if places:
            values, found = highest(_at(logits, places))
            ids.update(zip(places, torch.where(values > -torch.inf, found, NO_TOKEN).tolist(), strict=True))

    def _draw(self, logits: Tensor, rows: Sequence[RowSampler], places: Sequence[int], ids: dict[int, int]) -> None:
        """Put a drawn token of each of `places` into `ids`."""
        if not places:
            return
        drawn = _at(logits, places)
        parameters = [rows[place].parameters for place in places]
        draws = Draws.of(parameters, [rows[place].uniform() for place in places], logits.device)
        waiting: dict[int, list[int]] = {}
        for at, own in enumerate(parameters):
            waiting.setdefault(self._first_count(own), []).append(at)
        for count, next_count in pairwise([*self._counts, _ALL]):
            tried = sorted(waiting.pop(count, []))
            if not tried:
                continue
            found, enough = draw_from_top(_at(drawn, tried), count, draws.rows(tried))
            for at, token, is_enough in zip(tried, found.flatten().tolist(), enough.flatten().tolist(), strict=True):
                if is_enough:
                    ids[places[at]] = token
                else:
                    waiting.setdefault(next_count if self._sorts(parameters[at]) else _ALL, []).append(at)
        if whole := sorted(waiting.pop(_ALL, [])):
            found = draw_from_all(_at(drawn, whole), draws.rows(whole))
            ids.update((places[at], token) for at, token in zip(whole, found.flatten().tolist(), strict=True))

    def _first_count(self, parameters: SamplingParameters) -> int:
        """How many candidates a row begins with."""
        if not self._sorts(parameters) and not parameters.min_p:
            return _ALL
        least = parameters.top_k + 1 if self._limits(parameters) else _NUCLEUS
        return next((count for count in self._counts if count >= least), self._vocabulary)

    def _sorts(self, parameters: SamplingParameters) -> bool:
        """Whether the order of the tokens says which are left out; `min_p` only compares with the likeliest."""
        return parameters.top_p < 1 or self._limits(parameters)

    def _limits(self, parameters: SamplingParameters) -> bool:
        return 0 < parameters.top_k < self._vocabulary


def _at(logits: Tensor, places: Sequence[int]) -> Tensor:
    """Some rows, `places` in order; not a copy where they are all."""
    return logits if len(places) == logits.shape[0] else logits[list(places)]


def _bar(words: Tensor, tokens: Iterable[int], vocabulary: int) -> None:
    """Clear the bits of `tokens` in a row of a bitmask, unless no other would be left."""
    octets = words.view(torch.uint8)
    left = octets[: -(-vocabulary // 8)].clone()
    if vocabulary % 8:
        left[-1] &= (1 << vocabulary % 8) - 1
    for token in tokens:
        if token < vocabulary:
            left[token // 8] &= 0xFF - (1 << token % 8)
    if left.any():
        octets[: len(left)] = left
