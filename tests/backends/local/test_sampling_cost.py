"""What a row costs in elements that are read, whatever the machine: nothing is sorted, and each row pays for itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from streamsieve.backends.local.sampling.sampler import RowSampler, Sampler, SamplingParameters

SIZE = 151_936
PICKING = {"aten::index", "aten::gather", "aten::index_put_"}  # read a part of what they see
MAKING = {"aten::new_empty", "aten::empty_like"}
SORTING = {"aten::sort", "aten::topk", "aten::cumsum", "aten::argmax", "aten::multinomial"}


class Work(TorchDispatchMode):
    """Counts the elements that each operation reads, and the longest row that one of SORTING was given."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()
        self.sorted = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.name().partition(".")[0]
        if not func.is_view and name not in MAKING:
            read = args[1:] if name == "aten::index_put_" else result if name in PICKING else args
            tensors = [leaf for leaf in tree_leaves(read) if isinstance(leaf, Tensor)]
            self.read[name] += sum(tensor.numel() for tensor in tensors)
            if name in SORTING:
                self.sorted = max(self.sorted, args[0].shape[-1])
        return result


def work(*rows: SamplingParameters) -> Work:
    """One step of `rows`, each with a reply of 100 tokens and a prompt of 1000, over logits as a model makes them."""
    logits = torch.randn(len(rows), SIZE, generator=torch.Generator().manual_seed(0))
    logits[:, :300] += torch.linspace(16, 4, 300)
    samplers = [RowSampler(own, range(1000)) for own in rows]
    for sampler in samplers:
        for token in range(2000, 2100):
            sampler.record(token)
    with Work() as counted:
        Sampler(SIZE).sample(logits, samplers)
    return counted


GREEDY = SamplingParameters(temperature=0)

# How many times the vocabulary is read for one row.
PASSES: list[tuple[float, dict[str, Any]]] = [
    (1.1, {"temperature": 0}),
    (1.3, {"temperature": 0, "presence_penalty": 1.0, "repetition_penalty": 1.1}),
    (2.2, {"temperature": 0, "logprobs": 0}),
    (3.2, {"temperature": 0, "logprobs": 20}),
    (3.2, {"temperature": 0.8}),
    (3.3, {"temperature": 0.8, "top_p": 0.95}),
    (3.4, {"temperature": 0.8, "top_p": 0.95, "presence_penalty": 1.0, "frequency_penalty": 0.5}),
    (1.2, {"temperature": 0.7, "top_k": 20, "top_p": 0.8}),
    (1.2, {"temperature": 0.7, "top_k": 20, "min_p": 0.1}),
    (1.3, {"temperature": 0.8, "min_p": 0.1}),
]


@pytest.mark.parametrize(("passes", "own"), PASSES, ids=str)
def test_few_passes_over_a_row_and_no_sort_of_it(passes: float, own: dict[str, Any]) -> None:
    counted = work(SamplingParameters(**own))
    assert counted.sorted < SIZE / 10
    assert counted.read.total() < passes * SIZE, counted.read.most_common(5)


@pytest.mark.parametrize("own", [{"temperature": 0.8, "top_p": 0.95}, {"temperature": 0.8}, {"logprobs": 5}], ids=str)
def test_a_row_pays_for_itself_only(own: dict[str, Any]) -> None:
    """Beside 15 greedy rows it costs what it does alone, and one copy of what it needs."""
    alone, greedy = work(SamplingParameters(**own)).read.total(), work(*[GREEDY] * 15).read.total()
    together = work(*[GREEDY] * 7, SamplingParameters(**own), *[GREEDY] * 8).read.total()
    assert together < alone + 2 * greedy + 2 * SIZE


def test_a_nucleus_wider_than_the_candidates_is_still_exact_and_costs_a_sort_for_that_row_only() -> None:
    logits = torch.zeros(2, 5000)
    logits[1, :40] = 20.0
    rows = [RowSampler(SamplingParameters(top_p=0.9, seed=0)) for _ in range(2)]
    with Work() as counted:
        tokens = Sampler(5000).sample(logits, rows)
    assert counted.sorted == 5000
    assert counted.read["aten::sort"] < 5000 + 4 * 2 * (128 + 2048)
    assert tokens[1].id < 40
