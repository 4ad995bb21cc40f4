"""Continuous batching under the engine: the same tokens as `generate`, and everything that the engine promises."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor
from transformers import (
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from streamsieve.backends.local.engine import paged_attention
from streamsieve.backends.local.engine.continuous_engine import continuous_engine
from streamsieve.backends.local.engine.continuous_executor import Batching, ContinuousExecutor
from streamsieve.backends.local.engine.engine import Engine
from streamsieve.backends.local.engine.jobs import EngineFailed, Job
from streamsieve.backends.local.engine.paged_attention import PagedAttention
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.scheduler import Work
from streamsieve.backends.local.model.loading import LocalModel, describe
from streamsieve.backends.local.sampling.sampler import SamplingParameters
from streamsieve.backends.local.sampling.token import Token
from streamsieve.parsers.errors import ConfigurationError

VOCABULARY = 300
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "initializer_range": 0.5,  # logits far enough apart for every order of additions
}
GREEDY = SamplingParameters(temperature=0)


def llama(**options: Any) -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**SIZES, **options))


def gpt_oss() -> PreTrainedModel:
    layers = ["sliding_attention", "full_attention", "sliding_attention"]
    rope = {"rope_type": "default", "rope_theta": 10_000.0}
    return GptOssForCausalLM(
        GptOssConfig(
            **SIZES,
            sliding_window=16,
            num_local_experts=4,
            num_experts_per_tok=2,
            layer_types=layers,
            rope_parameters=rope,
        )
    )


MODELS = {
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES)),
    "llama": llama,
    "mistral": lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=16)),
    "gpt-oss": gpt_oss,
}


def tiny(name: str = "llama", **options: Any) -> LocalModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return describe(MODELS[name](**options))


def prompt(length: int, seed: int = 0) -> list[int]:
    generator = torch.Generator().manual_seed(1000 * seed + length)
    return torch.randint(0, VOCABULARY, (length,), generator=generator).tolist()


def generated(model: LocalModel, tokens: Sequence[int], count: int) -> list[int]:
    """What `generate` makes of it."""
    ids = torch.tensor([tokens])
    output = model.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=count,
        do_sample=False,
        pad_token_id=0,
        eos_token_id=None,
    )
    return cast(list[int], output[0, len(tokens) :].tolist())


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator[Engine]:
    engine.start()
    try:
        async with asyncio.timeout(60):
            yield engine
    finally:
        await engine.drain(5)


def job(tokens: Sequence[int], count: int, sampling: SamplingParameters = GREEDY, **options: Any) -> Job:
    return Job(tokens, sampling, count, options.pop("stops", frozenset()), **options)


async def reply(engine: Engine, wanted: Job) -> list[Token]:
    return [token async for tokens in engine.generate(wanted) for token in tokens]


async def ids(engine: Engine, wanted: Job) -> list[int]:
    return [token.id for token in await reply(engine, wanted)]


@pytest.mark.parametrize("name", MODELS)
async def test_greedy_is_what_generate_gives(name: str) -> None:
    """More prompts than rows, of which one shares another's pages, and one is read in several steps."""
    model = tiny(name)
    prompts = [prompt(length) for length in (5, 70, 33, 1, 290, 40)]
    prompts.append([*prompts[4][:200], 1, 2, 3])
    wanted = [generated(model, tokens, 12) for tokens in prompts]
    jobs = [job(tokens, 12) for tokens in prompts]
    async with running(continuous_engine(model, rows=4, positions=1024)) as engine:
        assert await asyncio.gather(*(ids(engine, one) for one in jobs)) == wanted
        stats = engine.stats()
    assert {one.finish_reason for one in jobs} == {"length"}
    assert stats.cache_filled == 0
    if name in ("qwen3", "llama"):  # sliding windows share nothing
        assert jobs[-1].cached_tokens == 192


class Watched(ContinuousExecutor):
    """Says whether a row had to give way."""

    gave_way = False

    def step(self, work: Work) -> Sequence[tuple[Row, Token]]:
        chosen = super().step(work)
        Watched.gave_way |= self._batches.scheduler.block_new_requests
        return chosen


async def test_small_steps_and_a_cache_that_does_not_hold_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that has to give way is read again, and its reply goes on where it was."""
    monkeypatch.setattr(Watched, "gave_way", False)
    model = replace(tiny(), longest=200)
    prompts = [prompt(40, seed) for seed in range(4)]
    wanted = [generated(model, tokens, 24) for tokens in prompts]
    batching = Batching(rows=4, tokens=16, page=16, pages=13)  # 208 positions of 256
    engine = Engine(lambda: Watched(model, PagedAttention(model), batching), longest=200, rows=4)
    async with running(engine):
        assert await asyncio.gather(*(ids(engine, job(tokens, 24)) for tokens in prompts)) == wanted
    assert Watched.gave_way


async def test_each_request_is_sampled_by_its_own_parameters() -> None:
    model = tiny()
    sampled = [
        SamplingParameters(seed=1, temperature=1.5, top_p=0.9, logprobs=3),
        SamplingParameters(seed=2, top_k=20, repetition_penalty=1.2),
        SamplingParameters(temperature=0, logit_bias={7: 100.0}),
    ]
    jobs = [lambda own=own: job(prompt(30), 12, own) for own in [*sampled, GREEDY]]
    async with running(continuous_engine(model, rows=8, positions=1024)) as engine:
        alone = [await reply(engine, one()) for one in jobs]
        together = await asyncio.gather(*(reply(engine, one()) for one in jobs))
    assert [[token.id for token in tokens] for tokens in together] == [
        [token.id for token in tokens] for tokens in alone
    ]
    assert [token.id for token in together[2]] == [7] * 12
    assert [token.id for token in together[3]] == generated(model, prompt(30), 12)
    (first, *_), logits = together[0], model.model(torch.tensor([prompt(30)])).logits[0, -1]
    best = logits.log_softmax(dim=0).topk(3)
    assert [id for id, _ in first.top] == best.indices.tolist()
    assert [logprob for _, logprob in first.top] == pytest.approx(best.values.tolist(), abs=1e-4)


class Counted:
    """A constraint: `first`, then tokens that `count` allows for their place, `length` in all."""

    def __init__(self, first: int, length: int, breaks_at: int | None = None) -> None:
        self._first, self._length, self._breaks_at = first, length, breaks_at
        self.taken: list[int] = []

    def forced(self) -> int | None:
        return None if self.taken else self._first

    def fill(self, bitmask: Tensor, row: int) -> bool:
        if len(self.taken) == self._breaks_at:
            raise RuntimeError("no such state")
        bitmask[row] = 0
        bitmask[row, len(self.taken)] = 0b1010  # tokens 32 * n + 1 and 32 * n + 3
        return True

    def accept(self, token: int) -> None:
        self.taken.append(token)

    @property
    def done(self) -> bool:
        return len(self.taken) == self._length


async def test_a_constraint_binds_its_row_only() -> None:
    model, constraint = tiny(), Counted(first=299, length=5)
    bound, free = job(prompt(20), 50, constraint=constraint), job(prompt(21), 20)
    async with running(continuous_engine(model, rows=4, positions=1024)) as engine:
        tokens, others = await asyncio.gather(ids(engine, bound), ids(engine, free))
    assert tokens == constraint.taken
    assert tokens[0] == 299
    assert [token // 32 for token in tokens[1:]] == [1, 2, 3, 4]
    assert {token % 32 for token in tokens[1:]} <= {1, 3}
    assert bound.finish_reason == "stop"
    assert others == generated(model, prompt(21), 20)


async def test_a_constraint_that_breaks_ends_its_row_only() -> None:
    model = tiny()
    bound, free = job(prompt(20), 50, constraint=Counted(9, 20, breaks_at=3)), job(prompt(21), 20)
    async with running(continuous_engine(model, rows=4, positions=1024)) as engine:
        failed, others = await asyncio.gather(ids(engine, bound), ids(engine, free), return_exceptions=True)
        assert await ids(engine, job(prompt(5), 5)) == generated(model, prompt(5), 5)
    assert isinstance(failed, EngineFailed)
    assert others == generated(model, prompt(21), 20)


async def test_a_stop_token_ends_the_reply() -> None:
    model = tiny()
    wanted = generated(model, prompt(9), 20)
    stopped = job(prompt(9), 20, stops=frozenset({wanted[6]}))
    async with running(continuous_engine(model, rows=4, positions=1024)) as engine:
        assert await ids(engine, stopped) == wanted[: wanted.index(wanted[6]) + 1]
    assert stopped.finish_reason == "stop"


async def test_who_leaves_makes_room_at_the_next_step() -> None:
    model = tiny()
    async with running(continuous_engine(model, rows=1, positions=512)) as engine:
        left = job(prompt(40), 400)
        async with aclosing(engine.generate(left)) as tokens:
            await anext(tokens)
            waiting = asyncio.create_task(ids(engine, job(prompt(30), 10)))
            await anext(tokens)
        assert await asyncio.wait_for(waiting, 20) == generated(model, prompt(30), 10)
        assert left.finish_reason == "cancelled"
        assert engine.stats().cache_filled == 0


async def test_a_step_that_fails_ends_what_ran_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(attn_implementation="eager")
    wanted = generated(model, prompt(10), 8)
    forward, calls = model.model.forward, 0

    def broken(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise RuntimeError("out of memory")
        return forward(*arguments, **options)

    async with running(continuous_engine(model, rows=2, positions=512)) as engine:
        monkeypatch.setattr(model.model, "forward", broken)
        jobs = [job(prompt(10), 8), job(prompt(12), 8), job(prompt(10), 8)]
        first, second, third = await asyncio.gather(*(ids(engine, one) for one in jobs), return_exceptions=True)
        assert isinstance(first, EngineFailed)
        assert isinstance(second, EngineFailed)
        assert third == wanted  # it waited, and got the next executor
        assert await ids(engine, job(prompt(10), 8)) == wanted
        assert model.model.config._attn_implementation == "paged|eager"
    assert model.model.config._attn_implementation == "eager"


def test_windows_and_full_attention_share_the_cache() -> None:
    """What one sequence gets of it is less than all pages."""
    continuous_engine(tiny("gpt-oss"), rows=2, positions=192)
    with pytest.raises(ConfigurationError, match="its cache holds 448 tokens of one sequence, which may have 512"):
        continuous_engine(tiny("gpt-oss"), rows=2, positions=160)


async def test_nothing_is_left_on_the_model() -> None:
    model = tiny(attn_implementation="eager")
    before, random_state = dict(vars(model.model)), torch.random.get_rng_state()
    async with running(continuous_engine(model, rows=2, positions=512)) as engine:
        await ids(engine, job(prompt(10), 3))
    assert vars(model.model) == before
    assert torch.equal(torch.random.get_rng_state(), random_state)
    assert generated(model, prompt(10), 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, "slots: 0 is not"),
        ({"positions": 256}, "executor: 'continuous' cannot run this model: its cache holds 256 tokens"),
        ({"positions": 10**12}, "executor: 'continuous' cannot run this model: Memory"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_at_the_start(options: dict[str, Any], message: str) -> None:
    model = tiny(attn_implementation="eager")
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        continuous_engine(model, **options)
    assert model.model.config._attn_implementation == "eager"


def test_an_older_transformers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.__version__", "5.9.1")
    with pytest.raises(ConfigurationError, match=r"^executor: 'continuous' needs transformers 5\.24 .* 5\.9\.1"):
        continuous_engine(tiny(), rows=2)


def test_an_attention_that_cannot_be_batched_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="flex_attention is not supported"):
        continuous_engine(tiny(attn_implementation="flex_attention"), rows=2)


@pytest.mark.parametrize(
    ("device", "installed", "chosen", "warned"),
    [
        ("cpu", [2, 3], "sdpa", False),
        ("cuda", [], "sdpa", True),
        ("cuda", [2], "flash_attention_2", False),
        ("cuda", [2, 3], "flash_attention_3", False),
    ],
)
def test_flash_attention_is_taken_where_it_is_installed(
    device: str,
    installed: list[int],
    chosen: str,
    warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for version in (2, 3):
        monkeypatch.setattr(
            paged_attention, f"is_flash_attn_{version}_available", lambda version=version: version in installed
        )
    chosen_now: list[str] = []
    config = SimpleNamespace(_attn_implementation="sdpa")
    inner = SimpleNamespace(config=config, _supports_flash_attn=True, set_attn_implementation=chosen_now.append)
    model = cast(LocalModel, SimpleNamespace(model=inner, device=torch.device(device)))
    with caplog.at_level(logging.WARNING):
        attention = PagedAttention(model)
    assert bool(caplog.records) is warned
    attention.hold()
    attention.hold()
    attention.release()
    assert chosen_now == ([] if chosen == "sdpa" else [chosen])
    attention.release()
    assert chosen_now == ([] if chosen == "sdpa" else [chosen, "sdpa"])
