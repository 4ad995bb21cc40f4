"""Linear layers on a CPU for a few rows, each done the way that is fastest for their number.

Libraries are tuned for many rows. With two or three, the same product can take several times as long one way round as
the other, or as with a row more; so what there is to choose from is measured once, when a model is loaded.
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

_PROBE_BYTES = 32 * 2**20
"""As much of the weights of one shape is measured: more than caches hold, little enough not to take long."""

_TRIES = 2

Product = Callable[[Tensor, Tensor], Tensor]


def _columns(rows: Tensor, weight: Tensor) -> Tensor:
    """`linear`, the other way round."""
    return (weight @ rows.T).T.contiguous()


@dataclass(frozen=True, slots=True)
class Way:
    """`rows`: filled up to so many; `product`: then done so."""

    rows: int
    product: Product


class NarrowLinear:
    """The forward of a linear layer, for inference. `ways`: for each number of rows, from none on."""

    def __init__(self, layer: torch.nn.Linear, ways: Sequence[Way | None]) -> None:
        self._weight, self._bias, self._ways = layer.weight, layer.bias, ways

    def __call__(self, input: Tensor) -> Tensor:
        count = input.shape[:-1].numel()
        way = self._ways[count] if count < len(self._ways) else None
        if way is None or (way.product is linear and way.rows == count):
            return linear(input, self._weight, self._bias)
        rows = input.reshape(count, -1)
        filled = rows if way.rows == count else pad(rows, (0, 0, 0, way.rows - count))
        output = way.product(filled, self._weight)[:count].view(*input.shape[:-1], -1)
        return output if self._bias is None else output + self._bias


def tune_linear_layers(model: PreTrainedModel) -> None:
    """Give the linear layers of a model on a CPU their fastest forward. Measures; a second or two."""
    shapes: dict[torch.Size, list[torch.nn.Linear]] = {}
    for layer in model.modules():
        if type(layer) is torch.nn.Linear:
            shapes.setdefault(layer.weight.shape, []).append(layer)
    for layers in shapes.values():
        ways = fastest_ways([layer.weight for layer in layers])
        for layer in layers:
            layer.forward = NarrowLinear(layer, ways)  # type: ignore[method-assign]  # torch asks the layer itself


@torch.inference_mode()
def fastest_ways(weights: Sequence[Tensor]) -> Sequence[Way | None]:
    """The way for each number of rows up to the last of `_SIZES`, for weights of one shape."""
    sample = _sample(weights)
    costs = {
        (size, product): _seconds(product, torch.zeros_like(sample[0][:1]).expand(size, -1).clone(), sample)
        for size in _SIZES
        for product in (linear, _columns)
    }
    ways: list[Way | None] = [None]
    for count in range(1, _SIZES[-1] + 1):
        possible = [way for way in costs if way[0] >= count]
        ways.append(Way(*min(possible, key=costs.__getitem__)))
    return ways


def _sample(weights: Sequence[Tensor]) -> Sequence[Tensor]:
    """Several weights, or a part of one, of `_PROBE_BYTES` together, where there is so much."""
    first = weights[0]
    if first.nbytes > _PROBE_BYTES:
        return [first[: _PROBE_BYTES // (first.shape[1] * first.itemsize)]]
    return weights[: max(1, _PROBE_BYTES // first.nbytes)]


def _seconds(product: Product, rows: Tensor, weights: Sequence[Tensor]) -> float:
    best = float("inf")
    for _ in range(_TRIES):
        start = time.perf_counter()
        for weight in weights:
            product(rows, weight)
        best = min(best, time.perf_counter() - start)
    return best
