"""Draw tokens: one uniform number a row, looked up in the cumulative distribution of the row.

Weights are summed in 64-bit floats, so that the number of rows beside a row does not change its token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from streamsieve.backends.local.sampling.candidates import top
from streamsieve.backends.local.sampling.parameters import SamplingParameters

NO_TOKEN = -1
"""Drawn from a row without a finite logit."""

_CHUNK = 64


@dataclass(frozen=True, slots=True)
class Draws:
    """What rows are drawn by: a column [rows, 1] each, in 64-bit floats but for `top_k`, where 0 is no limit."""

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    uniform: Tensor

    @classmethod
    def of(cls, rows: Sequence[SamplingParameters], uniforms: Sequence[float], device: torch.device) -> Draws:
        """Those of `rows`, with one number from [0, 1) for each."""
        shape = [(row.temperature, row.top_p, row.min_p, uniform) for row, uniform in zip(rows, uniforms, strict=True)]
        temperature, top_p, min_p, uniform = torch.tensor(shape, dtype=torch.float64).to(device).chunk(4, dim=1)
        top_k = torch.tensor([[max(row.top_k, 0)] for row in rows]).to(device)
        return cls(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, uniform=uniform)

    def rows(self, which: Sequence[int]) -> Draws:
        """Some of the rows, in the order they have here."""
        if len(which) == self.uniform.shape[0]:
            return self
        return Draws(*(getattr(self, column.name)[list(which)] for column in fields(self)))


def draw_from_all(logits: Tensor, draws: Draws) -> Tensor:
    """Token ids [rows, 1] from all of each row, where only `min_p` leaves tokens out. Nothing is sorted.

    The distribution is cumulated by token id: over chunks of it first, then within the chunk drawn.
    """
    rows, vocabulary = logits.shape
    scaled = logits.new_empty(rows, -(-vocabulary // _CHUNK) * _CHUNK)
    scaled[:, vocabulary:] = -torch.inf
    torch.mul(logits, draws.temperature.reciprocal().float(), out=scaled[:, :vocabulary])
    if draws.min_p.any():
        least = scaled.amax(dim=1, keepdim=True) + draws.min_p.log().float()
        scaled.masked_fill_(scaled < least, -torch.inf)
    chunks = torch.softmax(scaled, dim=1, out=scaled).view(rows, -1, _CHUNK)
    cumulative = chunks.sum(dim=2).double().cumsum(dim=1)
    total = cumulative[:, -1:]
    target = draws.uniform * total
    chunk = torch.searchsorted(cumulative, target, right=True).clamp_(max=chunks.shape[1] - 1)
    before = torch.where(chunk > 0, cumulative.gather(1, (chunk - 1).clamp(min=0)), 0.0)
    within = chunks[torch.arange(rows, device=logits.device).unsqueeze(1), chunk].squeeze(1).double().cumsum(dim=1)
    # The two sums of a chunk may differ in their last bits.
    target = torch.minimum(target - before, within[:, -1:].nextafter(torch.zeros_like(total)))
    at = torch.searchsorted(within, target, right=True).clamp_(max=_CHUNK - 1)
    return torch.where(total > 0, chunk * _CHUNK + at, NO_TOKEN)


def draw_from_top(logits: Tensor, count: int, draws: Draws) -> tuple[Tensor, Tensor]:
    """Token ids [rows, 1] from the `count` highest logits of each row, and whether these were enough.

    They are where everything that `min_p`, `top_k` and `top_p` keep is among them for sure. `top_k` has to be
    below `count` or the vocabulary.
    """
    values, ids = top(logits, count)
    scaled = (values - values[:, :1]).double() / draws.temperature
    weights = scaled.exp()
    cumulative = weights.cumsum(dim=1)
    likely = ((weights > 0) & (scaled >= draws.min_p.log())).sum(dim=1, keepdim=True).clamp_(min=1)
    kept = torch.where(draws.top_k > 0, likely.minimum(draws.top_k), likely)
    total = cumulative.gather(1, kept - 1)
    whole = count == logits.shape[1]
    enough = torch.full_like(kept, True, dtype=torch.bool)
    if not whole:
        endless = kept == count
        enough = ~endless | (draws.min_p == 0)
        if endless.any():
            total = torch.where(endless, _total_weight(logits, ids[:, :1], draws.temperature), total)
    nucleus = (cumulative < draws.top_p * total).sum(dim=1, keepdim=True) + 1
    kept = torch.where(draws.top_p < 1, kept.minimum(nucleus), kept)
    if not whole:
        enough &= values.gather(1, kept - 1) > values[:, -1:]
    at = torch.searchsorted(cumulative, draws.uniform * cumulative.gather(1, kept - 1), right=True)
    drawn = ids.gather(1, at.minimum(kept - 1))
    finite = values[:, :1].isfinite()
    return torch.where(finite, drawn, NO_TOKEN), enough | ~finite


def _total_weight(logits: Tensor, highest: Tensor, temperature: Tensor) -> Tensor:
    """The weights of all tokens together, where that of the `highest` is 1."""
    scaled = logits * temperature.reciprocal().float()
    return torch.softmax(scaled, dim=1, out=scaled).gather(1, highest).double().reciprocal()
