"""The product with the vocabulary's matrix on a CPU, done the way round that is fastest for the number of rows.

It is most of a small model's step. Libraries are tuned for many rows: with two or three, the same product can take
several times as long one way round as the other, so both are measured once, when a model is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear, pad
from transformers import PreTrainedModel

_SIZES = (1, 2, 3, 4, 6, 8, 10, 12, 16)
"""Numbers of rows that are measured; more rows go the usual way."""

_PROBE_BYTES = 64 * 2**20
"""As much of the matrix is measured: more than caches hold, little enough not to take long."""

_TRIES = 3

Product = Callable[[Tensor, Tensor], Tensor]


def _columns(rows: Tensor, weight: Tensor) -> Tensor:
    """`linear`, the other way round."""
    return (weight @ rows.T).T.contiguous()


@dataclass(frozen=True, slots=True)
class _Way:
    """`rows`: filled up to so many; `product`: then done so."""

    rows: int
    product: Product


class Head:
    """The forward of a bias-free linear layer, for inference only: gradients are not kept."""

    def __init__(self, weight: Tensor) -> None:
        """Measures; a second or so."""
        self._weight = weight
        self._ways = _ways(weight)

    @torch.inference_mode()
    def __call__(self, hidden: Tensor) -> Tensor:
        rows = hidden.flatten(0, -2)
        count = len(rows)
        way = self._ways[count] if count < len(self._ways) else None
        if way is None:
            return linear(hidden, self._weight)
        filled = rows if way.rows == count else pad(rows, (0, 0, 0, way.rows - count))
        return way.product(filled, self._weight)[:count].view(*hidden.shape[:-1], -1)


def tune_head(model: PreTrainedModel) -> None:
    """Give the output layer of `model` its fastest forward; on a CPU, where it is a plain linear layer."""
    layer = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if type(layer) is torch.nn.Linear and layer.bias is None and layer.weight.device.type == "cpu":
        layer.forward = Head(layer.weight)


@torch.inference_mode()
def _ways(weight: Tensor) -> Sequence[_Way | None]:
    """The way for each number of rows up to the last of `_SIZES`."""
    sample = weight[: max(1, _PROBE_BYTES // (weight.shape[1] * weight.itemsize))]
    costs = {
        (size, product): _seconds(product, torch.zeros(size, weight.shape[1], dtype=weight.dtype), sample)
        for size in _SIZES
        for product in (linear, _columns)
    }
    ways: list[_Way | None] = [None]
    for count in range(1, _SIZES[-1] + 1):
        possible = [way for way in costs if way[0] >= count]
        ways.append(_Way(*min(possible, key=costs.__getitem__)))
    return ways


def _seconds(product: Product, rows: Tensor, weight: Tensor) -> float:
    best = float("inf")
    for _ in range(_TRIES):
        start = time.perf_counter()
        product(rows, weight)
        best = min(best, time.perf_counter() - start)
    return best
