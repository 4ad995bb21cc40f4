"""What choosing a token costs: `python -m benchmarks.sampling --json`.

Milliseconds a row over the vocabulary of Qwen3, for several requests, ours beside two simple samplers over
the same logits, measured in turns: `multinomial` is softmax and `torch.multinomial`, and cannot leave
tokens out; `sorted` is what transformers does for `top_p`, with a sort of the vocabulary.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.floor import best_in_turns
from streamsieve.backends.local.sampling.sampler import RowSampler, Sampler, SamplingParameters

VOCABULARY = 151_936
_PROMPT = range(1000)
_REPLY = range(1000, 1200)
_NUCLEUS: dict[str, Any] = {"temperature": 0.8, "top_p": 0.95}

REQUESTS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0},
    "temperature 0.8, top_p 0.95": _NUCLEUS,
    "temperature 1": {},
    "top_k 20, top_p 0.8": {"top_k": 20, "top_p": 0.8},
    "with penalties": _NUCLEUS | {"presence_penalty": 0.5, "repetition_penalty": 1.1},
    "with top_logprobs 5": _NUCLEUS | {"logprobs": 5},
    "greedy with logprobs": {"temperature": 0, "logprobs": 0},
}


def model_logits(rows: int) -> Tensor:
    """Logits with a few likely tokens and a long tail, as a trained model gives them."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, VOCABULARY, generator=generator) * 2
    likely = torch.randint(VOCABULARY, (rows, 200), generator=generator)
    return logits.scatter_add_(1, likely, torch.linspace(16, 4, 200).expand(rows, -1))


def sample(logits: Tensor, own: dict[str, Any]) -> float:
    """Seconds of one step of ours, every row with the same parameters."""
    samplers = [RowSampler(SamplingParameters(**own), _PROMPT) for _ in logits]
    for sampler in samplers:
        for token in _REPLY:
            sampler.record(token)
    return _seconds(partial(Sampler(VOCABULARY).sample, logits.clone(), samplers))


def multinomial(logits: Tensor) -> float:
    """Seconds of one step without leaving tokens out."""
    return _seconds(lambda: torch.multinomial((logits / 0.8).softmax(dim=1), 1).tolist())


def full_sort(logits: Tensor) -> float:
    """Seconds of one step with the vocabulary sorted."""

    def step() -> None:
        ordered, ids = (logits / 0.8).sort(dim=1)
        remove = ordered.softmax(dim=1).cumsum(dim=1) <= 1 - 0.95
        masked = logits.masked_fill(remove.scatter(1, ids, remove), -torch.inf)
        torch.multinomial(masked.softmax(dim=1), 1).tolist()

    return _seconds(step)


def _seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def measure(rows: int, rounds: int) -> dict[str, float]:
    """Milliseconds a row in a batch of `rows`, by what was asked."""
    logits = model_logits(rows)
    subjects: dict[str, Callable[[], float]] = {name: partial(sample, logits, own) for name, own in REQUESTS.items()}
    subjects |= {"multinomial": partial(multinomial, logits), "sorted": partial(full_sort, logits)}
    best = best_in_turns(subjects, rounds)
    return {name: round(seconds * 1000 / rows, 4) for name, seconds in best.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampling", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=10, help="how often everything is measured (default: 10)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default: 1)")
    parser.add_argument("rows", nargs="*", type=int, default=[1, 32], help="batch sizes (default: 1 32)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    measured = {str(rows): measure(rows, options.rounds) for rows in options.rows}
    if options.json:
        print(json.dumps({"vocabulary": VOCABULARY, "ms_per_row": measured}))
        return
    for rows, figures in measured.items():
        print(f"{rows} rows, ms a row")
        for name, value in figures.items():
            print(f"  {name:30} {value:8.3f}")


if __name__ == "__main__":
    main()
