"""Slots against `model.generate`: the same tokens, whatever else runs beside a reply."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    DeepseekV3Config,
    Gemma2Config,
    Gemma3TextConfig,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    PreTrainedConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)

from streamsieve.backends.local.engine.engine import Engine
from streamsieve.backends.local.engine.jobs import Job
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.scheduler import Chunk, Scheduler, Work
from streamsieve.backends.local.engine.slot_check import layer_shapes
from streamsieve.backends.local.engine.slot_engine import slot_engine
from streamsieve.backends.local.engine.slot_executor import SlotExecutor
from streamsieve.backends.local.model.loading import LocalModel, describe, load
from streamsieve.backends.local.sampling.parameters import SamplingParameters

VOCABULARY = 400
_SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": 0,
}
_WINDOW = {"sliding_window": 20}
_EXPERTS = {"num_experts_per_tok": 2}
_ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}
_TYPES = {"layer_types": ["sliding_attention", "full_attention"]}

CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "qwen3": lambda: Qwen3Config(**_SMALL),
    "llama": lambda: LlamaConfig(**_SMALL),
    "mistral, all layers sliding": lambda: MistralConfig(**_SMALL, **_WINDOW),
    "gpt-oss, sliding and full, sinks, eager": lambda: GptOssConfig(
        **_SMALL, **_WINDOW, **_EXPERTS, **_ROPE, num_local_experts=4
    ),
    "gemma2, scores capped, eager": lambda: Gemma2Config(**_SMALL, **_WINDOW, **_TYPES),
    "gemma3, sliding and full, two ropes": lambda: Gemma3TextConfig(**_SMALL, **_WINDOW, **_TYPES),
    "phi3, all layers sliding": lambda: Phi3Config(**_SMALL, **_WINDOW),
    "qwen3 experts": lambda: Qwen3MoeConfig(**_SMALL, **_EXPERTS, num_experts=4, moe_intermediate_size=32),
    "deepseek, keys wider than values": lambda: DeepseekV3Config(
        **{**_SMALL, "num_key_value_heads": 4, "head_dim": 8},
        **_EXPERTS,
        n_routed_experts=4,
        n_group=1,
        topk_group=1,
        moe_intermediate_size=32,
        first_k_dense_replace=1,
        q_lora_rank=24,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=16,
        v_head_dim=16,
    ),
}


def make(config: PreTrainedConfig) -> LocalModel:
    """A random model whose greedy replies do not repeat one token: its weights are large."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return describe(model)


@pytest.fixture(scope="module", params=CONFIGS)
def model(request: pytest.FixtureRequest) -> LocalModel:
    return make(CONFIGS[request.param]())


@pytest.fixture(scope="module")
def qwen3() -> LocalModel:
    return make(CONFIGS["qwen3"]())


def generated(model: LocalModel, prompt: Sequence[int], new: int) -> list[int]:
    ids = torch.tensor([prompt])
    output = model.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False)
    return output[0, len(prompt) :].tolist()


def likeliest(model: LocalModel, prompt: Sequence[int], reply: Sequence[int]) -> bool:
    """Whether each token of `reply` is the likeliest behind those before it: one call instead of one a token."""
    with torch.inference_mode():
        logits = model.model(torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1]
    return logits.argmax(-1).tolist() == list(reply)


def prompts(count: int, longest: int = 70, seed: int = 0) -> list[list[int]]:
    dice = random.Random(seed)
    return [[dice.randrange(VOCABULARY) for _ in range(dice.randint(1, longest))] for _ in range(count)]


def job(prompt: Sequence[int], new: int = 8) -> Job:
    return Job(prompt, SamplingParameters(temperature=0), new, frozenset())


@dataclass
class Steps:
    """An executor run by hand, step by step, as a worker would."""

    model: LocalModel
    rows: int = 8
    positions: int = 4096
    chunk: int = 16
    executor: SlotExecutor = field(init=False)
    scheduler: Scheduler = field(init=False)
    done: dict[Job, list[int]] = field(default_factory=dict)
    preempted: int = 0

    def __post_init__(self) -> None:
        shapes = layer_shapes(self.model)
        size = self.positions * sum(shape.position_bytes for shape in shapes)
        self.executor = SlotExecutor(self.model, shapes, rows=self.rows, cache_bytes=size)
        self.scheduler = Scheduler(self.rows, self.chunk, 2 * self.chunk)

    def add(self, job: Job) -> Row:
        self.scheduler.add(row := Row(job))
        return row

    def drop(self, row: Row) -> None:
        if self.scheduler.remove(row):
            self.executor.release(row)

    @torch.inference_mode()
    def step(self) -> None:
        for row in self.executor.prepare():
            self.preempted += 1
            self.scheduler.put_back(row)
        self.scheduler.admit(self.executor.admit)
        for row, token in self.executor.step(self.scheduler.plan(self.executor.held)):
            row.tokens.append(token.id)
            if row.generated == row.job.max_tokens:
                self.done[row.job] = row.tokens[len(row.job.prompt) :]
                self.drop(row)

    def run(self, jobs: Sequence[Job] = ()) -> None:
        for each in jobs:
            self.add(each)
        while self.scheduler.running or self.scheduler.waiting:
            self.step()

    def agree(self) -> bool:
        return all(likeliest(self.model, each.prompt, tokens) for each, tokens in self.done.items())


@pytest.mark.parametrize("count", [1, 2, 3, 8, 16])
def test_greedy_replies_are_those_of_generate(model: LocalModel, count: int) -> None:
    subject = Steps(model, rows=count)
    jobs = [job(prompt, 3 + place % 6) for place, prompt in enumerate(prompts(count, seed=count))]
    subject.run(jobs)
    for each in jobs if count < 8 else jobs[::4]:  # `generate` takes its time
        assert subject.done[each] == generated(model, each.prompt, each.max_tokens)
    assert subject.agree()


def test_rows_that_come_and_go_in_the_middle(model: LocalModel) -> None:
    subject, dice = Steps(model, rows=4, chunk=9), random.Random(3)
    jobs = [job(prompt, dice.randint(1, 20)) for prompt in prompts(14, seed=5)]
    left: list[Row] = []
    for place, each in enumerate(jobs):
        row = subject.add(each)
        if place % 3 == 2:
            left.append(row)
        for _ in range(dice.randrange(4)):
            subject.step()
        if left and dice.random() < 0.7:
            subject.drop(left.pop())  # waiting, reading or writing
    subject.run()
    assert len(subject.done) >= 10
    assert subject.agree()


def test_prompts_in_chunks_of_any_size(qwen3: LocalModel) -> None:
    for chunk in (1, 2, 7, 64, 500):
        subject = Steps(qwen3, chunk=chunk)
        subject.run([job(prompt) for prompt in prompts(4, longest=80, seed=chunk)])
        assert subject.agree()


def test_buffers_grow_with_the_rows_in_them(qwen3: LocalModel) -> None:
    subject = Steps(qwen3, rows=3, positions=3 * 512, chunk=100)
    long = random.Random(6).choices(range(VOCABULARY), k=250)
    subject.run([job(prompt, 30) for prompt in [*prompts(2, seed=1), long]])
    assert subject.agree()
    assert subject.executor._cache.positions == 512
    assert subject.executor.usage.capacity == 3 * 512


def test_one_long_row_takes_no_room_for_all(qwen3: LocalModel) -> None:
    subject = Steps(qwen3, rows=64, positions=64 * 512)
    subject.run([job([7] * 400, 3)])
    assert (subject.executor._cache.slots, subject.executor._cache.positions) == (8, 448)
    subject.run([job(prompt, 3) for prompt in prompts(20, longest=5, seed=8)])
    assert subject.executor._cache.slots >= 20
    assert subject.agree()


def test_memory_for_fewer_rows_than_run_sends_the_newest_back(qwen3: LocalModel) -> None:
    subject = Steps(qwen3, rows=8, positions=576)
    subject.run([job(prompt, 65) for prompt in prompts(8, longest=10, seed=2)])
    assert subject.preempted == 4  # eight rows of 64 positions fit, and four of 128
    assert len(subject.done) == 8
    assert subject.agree()


def test_a_long_row_alone_does_not_starve_and_many_short_ones_follow(qwen3: LocalModel) -> None:
    subject = Steps(qwen3, rows=8, positions=512, chunk=64)
    (long,) = prompts(1, longest=1, seed=4)
    subject.run([job(long * 440, 12), *(job(prompt, 5) for prompt in prompts(8, longest=20, seed=9))])
    assert len(subject.done) == 9
    assert subject.agree()


@pytest.mark.parametrize(
    ("first", "second", "cached"),
    [
        pytest.param(range(100), range(100), 99, id="the same prompt: all but the last token"),
        pytest.param(range(100), range(140), 100, id="it goes on"),
        pytest.param(range(100), [*range(60), *range(200, 260)], 60, id="it branches off"),
        pytest.param(range(100), [*range(10), *range(200, 260)], 10, id="little: the slot itself is taken over"),
        pytest.param(range(100), range(200, 250), 0, id="nothing"),
        pytest.param(range(100), range(50), 49, id="it is a beginning"),
    ],
)
def test_what_a_row_left_is_not_read_again(
    qwen3: LocalModel, first: Sequence[int], second: Sequence[int], cached: int
) -> None:
    subject = Steps(qwen3, rows=1)
    subject.run([job(list(first), 1)])
    subject.run([again := job(list(second), 12)])
    assert again.cached_tokens == cached
    assert subject.agree()


def test_a_reply_is_known_to_the_next_turn(qwen3: LocalModel) -> None:
    subject = Steps(qwen3, rows=2)
    subject.run([first := job(list(range(50)), 20)])
    subject.run([second := job([*range(50), *subject.done[first], 7, 8, 9])])
    assert second.cached_tokens == 69  # the last token of a reply has not been through the model
    assert subject.agree()


def test_a_beginning_is_copied_from_a_row_that_writes(qwen3: LocalModel) -> None:
    subject = Steps(qwen3, rows=2)
    subject.add(job(list(range(60)), 30))
    for _ in range(8):
        subject.step()
    subject.run([second := job([*range(60), 300, 301], 10)])
    assert second.cached_tokens == 60
    assert subject.agree()


def test_choices_of_one_prompt_read_it_once(qwen3: LocalModel) -> None:
    subject = Steps(qwen3, rows=8)
    choices = [job(list(range(100)), 3 + place) for place in range(6)]
    subject.run(choices)
    assert sorted(choice.cached_tokens for choice in choices) == [0, 99, 99, 99, 99, 99]
    assert subject.agree()


def test_who_waits_for_a_prompt_goes_on_when_its_reader_leaves(qwen3: LocalModel) -> None:
    subject = Steps(qwen3, rows=4)
    leader = subject.add(job(list(range(200)), 3))
    follower = subject.add(job(list(range(200)), 9))
    subject.step()
    assert 0 < leader.stored < 199
    assert follower.stored == 0
    subject.drop(leader)
    subject.run()
    assert len(subject.done) == 1
    assert 0 < follower.job.cached_tokens < 199
    assert subject.agree()


def test_a_chunk_is_part_of_one_call_with_others(qwen3: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, calls = Steps(qwen3), []
    monkeypatch.setattr(subject.executor, "_prefill", lambda chunks: calls.append([chunk.length for chunk in chunks]))
    rows = [subject.add(job(prompt)) for prompt in ([1] * 9, [2] * 9, [3] * 2000, [4] * 2000)]
    for row, stored in zip(rows, (0, 4, 1100, 1500), strict=True):
        row.stored = stored
    subject.executor.step(Work([Chunk(row, 4) for row in reversed(rows)], []))
    assert calls == [[4, 4], [4], [4]]  # what is stored of long rows is not looked at by others


def engine_of(model: LocalModel, **options: int) -> Iterator[Engine]:
    engine = slot_engine(model, **options)
    engine.start()
    yield engine
    engine.stop()


async def reply(engine: Engine, job: Job, delay: float = 0.0) -> list[int]:
    await asyncio.sleep(delay)
    return [token.id async for tokens in engine.generate(job) for token in tokens]


async def test_the_whole_engine(qwen3: LocalModel) -> None:
    for engine in engine_of(qwen3, rows=4, cache_bytes=2**24):
        jobs = [job(prompt, 5 + place) for place, prompt in enumerate(prompts(10, seed=21))]
        abandoned = job([5] * 30, 400)
        async with aclosing(engine.generate(abandoned)) as tokens:
            await anext(tokens)
            replies = await asyncio.gather(*(reply(engine, each, 0.003 * place) for place, each in enumerate(jobs)))
        assert all(likeliest(qwen3, each.prompt, tokens) for each, tokens in zip(jobs, replies, strict=True))
        assert abandoned.finish_reason == "cancelled"
        stats = engine.stats()
        assert stats.generated_tokens >= sum(map(len, replies))
        assert stats.cache_capacity > 0


async def test_a_real_model(demo_model: Path) -> None:
    model = load(demo_model)
    ids = [[1, 504, 3575, 282, 4649, 314], [1, 17, 2, 17], [504, 1123, 314]]
    for engine in engine_of(model, rows=3, cache_bytes=2**30):
        replies = await asyncio.gather(*(reply(engine, job(prompt, 6)) for prompt in ids))
    assert all(likeliest(model, prompt, tokens) for prompt, tokens in zip(ids, replies, strict=True))
    assert model.eos_token_ids == {2}
    assert model.longest == 8192
