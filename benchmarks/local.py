"""The local engine beside what transformers offers, same weights, same machine: `python -m benchmarks.local [--json]`.

A random Qwen3 of the real vocabulary's size (6 layers, 256 wide, 151,936 tokens), float32 on one CPU thread, or
`--device cuda --dtype bfloat16`. `mixed_*`: 24 requests of 4 to 64 new tokens at once. `equal_*`: a batch of 8
alike. `grammar_overhead`: what a JSON schema for each of 32 rows adds to the time (`--tokenizer`). Rates are tokens
a second, of processor time on a CPU, of time on the clock on CUDA; the sides take turns, and the best round of each
counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, ContinuousBatchingConfig, GenerationConfig, Qwen3Config

from streamsieve.backends.local.constraints.constraint import Constraint
from streamsieve.backends.local.constraints.grammar import Grammars
from streamsieve.backends.local.constraints.request_constraint import RequestConstraints
from streamsieve.backends.local.constraints.vocabulary import Vocabulary
from streamsieve.backends.local.engine.engine import Engine
from streamsieve.backends.local.engine.jobs import Job
from streamsieve.backends.local.engine.slot_engine import slot_engine
from streamsieve.backends.local.model.loading import DTYPES, LocalModel, describe
from streamsieve.backends.local.model.narrow_linear import tune_linear_layers
from streamsieve.backends.local.sampling.parameters import SamplingParameters
from streamsieve.parsers.request import Request as ChatRequest

VOCABULARY = 151_936
PROMPT = (20, 100)
"""Tokens of a prompt: from, to."""

Start = Callable[[], Constraint | None]
"""Makes what binds one reply."""

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string", "minLength": 4}, "text": {"type": "string", "minLength": 10_000}},
    "required": ["title", "text"],
}
"""No reply comes to its end, so that bound ones are as long as free ones."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt, and how many tokens shall come."""

    prompt: list[int]
    new: int


def toy(device: str, dtype: str) -> LocalModel:
    """The random model."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        eos_token_id=None,
        pad_token_id=0,
    )
    return describe(AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype]).to(device))


def tuned(model: LocalModel) -> LocalModel:
    """The same weights as our loader hands them over, beside the model as transformers has it."""
    with torch.device("meta"):
        other = AutoModelForCausalLM.from_config(model.model.config, dtype=model.dtype)
    other.load_state_dict(model.model.state_dict(), assign=True)
    for name, buffer in model.model.named_buffers():  # those that no state dict has
        owner, _, attribute = name.rpartition(".")
        setattr(other.get_submodule(owner), attribute, buffer)
    if model.device.type == "cpu":
        tune_linear_layers(other)
    return describe(other)


def mixed(count: int, round: int) -> list[Request]:
    """Requests of mixed lengths. Those of another round are as long, but share no beginning that a cache could know."""
    lengths, tokens = random.Random(7), random.Random(round)
    return [Request(_prompt(tokens, lengths.randint(*PROMPT)), lengths.randint(4, 64)) for _ in range(count)]


def equal(count: int, round: int) -> list[Request]:
    """Requests of one length."""
    tokens = random.Random(round)
    return [Request(_prompt(tokens, 61), 24) for _ in range(count)]


def _prompt(dice: random.Random, length: int) -> list[int]:
    return [dice.randrange(VOCABULARY) for _ in range(length)]


def sequential(model: LocalModel, requests: Sequence[Request]) -> None:
    """`model.generate`, one request after the other."""
    for request in requests:
        batch(model, [request])


def batch(model: LocalModel, requests: Sequence[Request]) -> None:
    """`model.generate` for requests of one length at once."""
    ids = torch.tensor([request.prompt for request in requests], device=model.device)
    new = requests[0].new
    output = model.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=new, do_sample=False
    )
    assert output.shape[1] == ids.shape[1] + new


class ContinuousBatching:
    """transformers' own, with room for all requests at once. It runs only while it is measured."""

    def __init__(self, model: LocalModel) -> None:
        settings = GenerationConfig(do_sample=False, max_new_tokens=64, eos_token_id=-1, pad_token_id=0)
        sizes = ContinuousBatchingConfig(page_size=32, num_blocks=256, max_batch_tokens=512, use_async_batching=False)
        self._manager = model.model.init_continuous_batching(
            generation_config=settings, continuous_batching_config=sizes
        )

    def __enter__(self) -> ContinuousBatching:
        self._manager.start()
        self([Request([1, 2, 3], 4)])
        return self

    def __exit__(self, *error: object) -> None:
        self._manager.stop(block=True, keep_for_next_session=True)

    def __call__(self, requests: Sequence[Request]) -> None:
        expected = {
            self._manager.add_request(request.prompt, max_new_tokens=request.new): request.new for request in requests
        }
        while expected:
            result = self._manager.get_result(timeout=600)
            assert len(result.generated_tokens) == expected.pop(result.request_id), result.error


def engine(subject: Engine, requests: Sequence[Request]) -> None:
    """Our engine, all requests at once."""
    asyncio.run(_engine(subject, requests))


async def _engine(subject: Engine, requests: Sequence[Request], start: Start = lambda: None) -> None:
    await asyncio.gather(*(_reply(subject, request, start()) for request in requests))


async def _reply(subject: Engine, request: Request, constraint: Constraint | None) -> None:
    job = Job(request.prompt, SamplingParameters(temperature=0), request.new, frozenset(), constraint)
    count = 0
    async for tokens in subject.generate(job):
        count += len(tokens)
    assert count == request.new


def bound(subject: Engine, start: Start, requests: Sequence[Request]) -> None:
    """Our engine, each reply bound by a grammar of its own."""
    asyncio.run(_engine(subject, requests, start))


def grammar(folder: str) -> Start:
    """The constraint of `SCHEMA` for the tokenizer in `folder`."""
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    vocabulary = Vocabulary(tokenizer, size=VOCABULARY, stops=[tokenizer.eos_token_id])
    constraints = RequestConstraints(Grammars(vocabulary), None, tokenizer.encode)
    form = {"type": "json_schema", "json_schema": {"name": "note", "schema": SCHEMA, "strict": False}}
    found = asyncio.run(constraints.of({"response_format": form}, ChatRequest()))
    assert found is not None
    return found.start


def measure(model: LocalModel, rounds: int, start: Start | None) -> dict[str, float]:
    """The figures: tokens a second, and ratios."""
    clock = time.process_time if model.device.type == "cpu" else time.perf_counter
    subject = slot_engine(tuned(model), rows=32)
    subject.start()
    continuous = ContinuousBatching(model)
    best: dict[str, float] = {}

    def note(name: str, run: Callable[[Sequence[Request]], None], requests: Sequence[Request]) -> None:
        began = clock()
        run(requests)
        rate = sum(request.new for request in requests) / (clock() - began)
        best[name] = max(best.get(name, 0.0), rate)

    for warming in (equal(8, -1), mixed(24, -1)):
        engine(subject, warming)
        batch(model, warming[:1])
    for round in range(rounds):
        load, alike = mixed(24, round), equal(8, round)
        note("mixed_sequential", partial(sequential, model), load)
        note("mixed_engine", partial(engine, subject), load)
        with continuous:
            note("mixed_continuous", continuous, load)
        note("equal_batched", partial(batch, model), alike)
        note("equal_engine", partial(engine, subject), alike)
        if start is not None:
            note("free_32_rows", partial(engine, subject), equal(32, -2 - 2 * round))
            note("bound_32_rows", partial(bound, subject, start), equal(32, -3 - 2 * round))
    subject.stop()
    if start is not None:
        best["grammar_overhead"] = best["free_32_rows"] / best["bound_32_rows"] - 1
    return best | {
        "mixed_ratio_to_sequential": best["mixed_engine"] / best["mixed_sequential"],
        "mixed_ratio_to_continuous": best["mixed_engine"] / best["mixed_continuous"],
        "equal_ratio_to_batched": best["equal_engine"] / best["equal_batched"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokenizer", help="a folder with Qwen3's tokenizer, for what grammars cost")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    start = None if options.tokenizer is None else grammar(options.tokenizer)
    measured = measure(toy(options.device, options.dtype), options.rounds, start)
    figures = {name: round(value, 3) for name, value in measured.items()}
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:28} {value:8.3f}")


if __name__ == "__main__":
    main()
