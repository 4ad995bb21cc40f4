"""The sampler against a slow one that says the same in plain words, number by number."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import xgrammar
from torch import Tensor

from streamsieve.backends.local.sampling.candidates import highest, top
from streamsieve.backends.local.sampling.sampler import RowSampler, Sampler, SamplingParameters

END = 3  # the token that stops

Kept = list[tuple[int, float]]
"""Tokens with their probabilities, in the order in which the cumulative distribution is made."""


class Told(RowSampler):
    """A row whose random number is told."""

    def __init__(self, parameters: SamplingParameters, uniform: float) -> None:
        super().__init__(parameters)
        self._told = uniform

    def uniform(self) -> float:
        return self._told


def kept(logits: Sequence[float], parameters: SamplingParameters) -> Kept:
    """The distribution that is drawn from: vLLM's steps, one after the other, over a sorted vocabulary."""
    highest = max(logits)
    weights = {token: math.exp((logit - highest) / parameters.temperature) for token, logit in enumerate(logits)}
    order = sorted(weights, key=lambda token: (-logits[token], token))
    least = parameters.min_p * max(weights.values())
    order = [token for token in order if weights[token] >= least and weights[token] > 0]
    if parameters.top_k > 0:
        order = order[: parameters.top_k]
    total, before, nucleus = sum(weights[token] for token in order), 0.0, []
    for token in order:
        if parameters.top_p < 1 and before >= parameters.top_p * total:
            break
        nucleus.append(token)
        before += weights[token]
    few = parameters.min_p and (len(nucleus) < 128 or len(logits) <= 128)
    if parameters.top_p == 1 and not 0 < parameters.top_k < len(logits) and not few:
        nucleus.sort()  # nothing has to be sorted there
    return [(token, weights[token] / before) for token in nucleus]


def edges(distribution: Kept, most: int = 60) -> list[tuple[float, int]]:
    """Numbers from just above the start, the middle and just below the end of tokens' parts, with the token."""
    found, start = [], 0.0
    for token, probability in distribution:
        if probability > 1e-5:
            found += [(start + probability * part, token) for part in (0.01, 0.5, 0.99)]
        start += probability
    chosen = random.Random(0).sample(found, min(most, len(found)))
    return [(0.0, distribution[0][0]), *chosen, (1 - 2**-53, distribution[-1][0])]


def peaked(size: int) -> Tensor:
    generator = torch.Generator().manual_seed(size)
    return torch.randn(size, generator=generator) * 2 + torch.where(torch.arange(size) % 7 == 3, 3.0, 0.0)


def flat(size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(1)) * 0.05


def equal(size: int) -> Tensor:
    return torch.zeros(size)


def coarse(size: int) -> Tensor:
    return peaked(size).bfloat16().float().mul(4).round().div(4)  # many tokens share a value


def narrow(size: int) -> Tensor:
    return torch.where(torch.arange(size) % (size // 3) == 1, peaked(size), -torch.inf)  # as a grammar leaves it


SHAPES: dict[str, dict[str, Any]] = {
    "all": {},
    "hot": {"temperature": 1.7},
    "top_p": {"top_p": 0.9},
    "narrow top_p": {"top_p": 0.01},
    "cool top_p": {"temperature": 0.6, "top_p": 0.95},
    "wide top_p": {"temperature": 1.5, "top_p": 0.999},
    "top_k 1": {"top_k": 1},
    "top_k": {"top_k": 20},
    "top_k of a candidate more": {"top_k": 32},
    "large top_k": {"top_k": 300, "top_p": 0.8},
    "top_k of all": {"top_k": 10**6},
    "min_p": {"min_p": 0.1},
    "min_p of the best": {"min_p": 1},
    "all three": {"temperature": 0.8, "top_k": 40, "top_p": 0.9, "min_p": 0.02},
    "min_p, top_p": {"top_p": 0.9, "min_p": 0.001},
}


@pytest.mark.parametrize("size", [40, 64, 3001])
@pytest.mark.parametrize("make", [peaked, flat, equal, coarse, narrow], ids=lambda make: make.__name__)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_each_part_of_the_unit_interval_is_its_token_s(
    shape: dict[str, Any], make: Callable[[int], Tensor], size: int
) -> None:
    logits = make(size)
    parameters = SamplingParameters(**shape)
    wanted = edges(kept(logits.double().tolist(), parameters))
    rows = [Told(parameters, uniform) for uniform, _ in wanted]
    tokens = Sampler(size).sample(logits.repeat(len(rows), 1), rows)
    assert [token.id for token in tokens] == [token for _, token in wanted]


LARGE = 70_001  # where a few chunks are looked into, of more than a thousand


@pytest.mark.parametrize("make", [peaked, flat, coarse, narrow], ids=lambda make: make.__name__)
@pytest.mark.parametrize("shape", ["all", "narrow top_p", "top_p", "top_k", "large top_k", "min_p", "all three"])
def test_a_large_vocabulary_too(shape: str, make: Callable[[int], Tensor]) -> None:
    logits = make(LARGE)
    parameters = SamplingParameters(**SHAPES[shape])
    wanted = edges(kept(logits.double().tolist(), parameters), most=8)
    rows = [Told(parameters, uniform) for uniform, _ in wanted]
    tokens = Sampler(LARGE).sample(logits.repeat(len(rows), 1), rows)
    assert [token.id for token in tokens] == [token for _, token in wanted]


def test_top_p_is_of_what_min_p_leaves() -> None:
    """More than the first candidates, though those of the nucleus are among them."""
    size, own = 6000, SamplingParameters(top_p=0.6, min_p=0.01)
    logits = torch.full((size,), math.log(0.005))  # together a third of all, and below min_p
    logits[:60], logits[60:200] = 0.0, math.log(0.02)
    logits += torch.linspace(0, -1e-3, size)
    for uniform, token in edges(kept(logits.double().tolist(), own)):
        assert Sampler(size).sample(logits.unsqueeze(0).clone(), [Told(own, uniform)])[0].id == token


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, LARGE])
@pytest.mark.parametrize("make", [peaked, equal, coarse, narrow], ids=lambda make: make.__name__)
def test_candidates_are_the_head_of_a_sort(make: Callable[[int], Tensor], size: int) -> None:
    logits = torch.stack([make(max(size, 3))[:size].roll(turn) for turn in (0, 1, 17)])
    values, ids = logits.sort(dim=1, descending=True, stable=True)
    found_values, found_ids = highest(logits)
    assert (found_values.tolist(), found_ids.tolist()) == (values[:, 0].tolist(), ids[:, 0].tolist())
    for count in {1, 2, 32, 100, size}:
        if count > size:
            continue
        found_values, found_ids = top(logits, count)
        assert found_values.tolist() == values[:, :count].tolist()
        sure = found_values > found_values[:, -1:]  # which of those that equal the last is open
        assert found_ids[sure].tolist() == ids[:, :count][sure].tolist()
        assert logits.gather(1, found_ids).tolist() == found_values.tolist()


def rows_of(*parameters: SamplingParameters, prompt: Sequence[int] = (), stops: Sequence[int] = ()) -> list[RowSampler]:
    return [RowSampler(own, prompt, frozenset(stops)) for own in parameters]


GREEDY = SamplingParameters(temperature=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [40, 1000, 5003])
def test_greedy_is_argmax(size: int, dtype: torch.dtype) -> None:
    logits = torch.randn(50, size, generator=torch.Generator().manual_seed(0)).to(dtype)  # 16-bit floats have ties
    tokens = Sampler(size).sample(logits.clone(), rows_of(*[GREEDY] * 50))
    assert [token.id for token in tokens] == logits.argmax(dim=1).tolist()


def penalised(
    logits: Sequence[float], own: SamplingParameters, prompt: Sequence[int], reply: Sequence[int]
) -> list[float]:
    edited = []
    for token, logit in enumerate(logits):
        logit += own.logit_bias.get(token, 0.0)
        if token in prompt or token in reply:
            logit = logit / own.repetition_penalty if logit > 0 else logit * own.repetition_penalty
        count = list(reply).count(token)
        logit -= own.frequency_penalty * count + (own.presence_penalty if count else 0.0)
        edited.append(logit)
    return edited


@pytest.mark.parametrize(
    "own",
    [
        {"presence_penalty": 1.5},
        {"presence_penalty": -2},
        {"frequency_penalty": 0.7},
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.5},
        {"logit_bias": {0: 5.0, 19: -100.0, 7: 2.5}},
        {
            "presence_penalty": 0.4,
            "frequency_penalty": 0.3,
            "repetition_penalty": 1.2,
            "logit_bias": {2: 3.0, 11: -4.0},
        },
    ],
    ids=str,
)
def test_penalties_and_bias(own: dict[str, Any]) -> None:
    """Greedy, over steps whose logits say so much else that every penalty decides somewhere."""
    size, prompt = 20, [1, 2, 2, 5]
    parameters = SamplingParameters(temperature=0, **own)
    steps = torch.randn(60, size, generator=torch.Generator().manual_seed(3)) * 2
    (row,), sampler = rows_of(parameters, prompt=prompt), Sampler(size)
    reply: list[int] = []
    for logits in steps:
        edited = penalised(logits.tolist(), parameters, prompt, reply)
        (token,) = sampler.sample(logits.unsqueeze(0).clone(), [row])
        assert token.id == max(range(size), key=edited.__getitem__)
        reply.append(token.id)
    assert reply != steps.argmax(dim=1).tolist()


def test_penalised_rows_are_drawn_by_what_the_penalties_leave() -> None:
    size, prompt, own = (
        30,
        [4, 4, 9],
        SamplingParameters(
            temperature=0.9, frequency_penalty=0.5, repetition_penalty=1.4, logit_bias={8: 2.0}, top_p=0.9
        ),
    )
    logits = peaked(size)
    reply = [11, 4, 11]
    wanted = edges(kept(penalised(logits.tolist(), own, prompt, reply), own))
    for uniform, token in wanted:
        row = Told(own, uniform)
        row.edits = RowSampler(own, prompt).edits
        for past in reply:
            row.record(past)
        assert Sampler(size).sample(logits.unsqueeze(0).clone(), [row])[0].id == token


def test_edits_of_tokens_that_the_vocabulary_lacks_are_left_out() -> None:
    own = SamplingParameters(temperature=0, repetition_penalty=2.0, logit_bias={39: 100.0, 1: 50.0})
    (token,) = Sampler(32).sample(torch.zeros(1, 40), rows_of(own, prompt=[35, 2]))
    assert token.id == 1


def test_logprobs_are_the_model_s_own() -> None:
    """Before bias, penalties, temperature and grammar; vLLM's `raw_logprobs`."""
    size = 1000
    logits = torch.randn(4, size, generator=torch.Generator().manual_seed(5)) * 3
    wanted = logits.double().log_softmax(dim=1)
    own = [
        SamplingParameters(temperature=0, logprobs=20, logit_bias={17: 100.0}),
        SamplingParameters(temperature=2.0, logprobs=3, top_k=5, seed=0),
        SamplingParameters(temperature=0),
        SamplingParameters(temperature=0, logprobs=0),
    ]
    bitmask = xgrammar.allocate_token_bitmask(4, size)
    bitmask[3] = 0
    bitmask[3, 0] = 1 << 6
    tokens = Sampler(size).sample(logits.clone(), rows_of(*own), bitmask, [False, False, False, True])
    assert (tokens[0].id, tokens[3].id) == (17, 6)
    assert (tokens[2].logprob, tokens[2].top, tokens[3].top) == (None, (), [])
    for row, count in ((0, 20), (1, 3), (3, 0)):
        token = tokens[row]
        assert token.logprob == pytest.approx(wanted[row, token.id].item(), abs=1e-5)
        best = wanted[row].topk(count)
        assert [id for id, _ in token.top] == best.indices.tolist()
        assert [logprob for _, logprob in token.top] == pytest.approx(best.values.tolist(), abs=1e-5)


def allowed(size: int, *rows: Sequence[int]) -> Tensor:
    bitmask = torch.zeros(len(rows), -(-size // 32), dtype=torch.int32)
    for row, tokens in enumerate(rows):
        for token in tokens:
            bitmask[row, token // 32] |= torch.tensor(1 << token % 32).to(torch.int32)
    return bitmask


@pytest.mark.parametrize("size", [64, 100])
@pytest.mark.parametrize("temperature", [0, 1])
def test_a_grammar_binds_its_rows_only(temperature: float, size: int) -> None:
    own = SamplingParameters(temperature=temperature)
    logits = torch.randn(3, size, generator=torch.Generator().manual_seed(2))
    for turn in range(40):
        first, last = turn % size, (turn + 31) % size
        bitmask = allowed(size, [first, last], [], [])
        tokens = Sampler(size).sample(logits.clone(), rows_of(own, own, own), bitmask, [True, False, False])
        assert tokens[0].id in (first, last)
        if not temperature:
            assert [token.id for token in tokens[1:]] == logits[1:].argmax(dim=1).tolist()


@pytest.mark.parametrize(
    ("grammar", "stopped"),
    [
        (None, False),  # no grammar: another token
        ([END, 7, 63], False),  # a grammar that allows another too
        ([END], True),  # one that allows nothing else: it wins
        ([END, 40], True),  # 40 stops as well
    ],
)
@pytest.mark.parametrize("temperature", [0, 1])
def test_min_tokens(temperature: float, grammar: list[int] | None, stopped: bool) -> None:
    size, stops = 64, [END, 40, 70]
    own = SamplingParameters(temperature=temperature, min_tokens=2)
    (row,) = rows_of(own, stops=stops)
    logits = torch.zeros(1, size)
    logits[0, END] = 50.0
    sampler = Sampler(size)
    for _ in range(2):
        bitmask = None if grammar is None else allowed(size, grammar)
        (token,) = sampler.sample(logits.clone(), [row], bitmask, [grammar is not None])
        assert (token.id in stops) is stopped
        assert grammar is None or token.id in grammar
    (token,) = sampler.sample(logits.clone(), [row])
    assert token.id == END


def test_bits_beyond_the_vocabulary_allow_nothing() -> None:
    """A padded bitmask may have them set: `min_tokens` must not take them for tokens that are left."""
    size = 42
    bitmask = allowed(64, [END, 45, 60])
    (row,) = rows_of(SamplingParameters(temperature=0, min_tokens=5), stops=[END])
    (token,) = Sampler(size).sample(torch.zeros(1, 64), [row], bitmask, [True])
    assert (token.id, row.broken) == (END, False)


def test_a_forced_token_comes_whatever_the_model_says() -> None:
    own = SamplingParameters(seed=1, logprobs=1, presence_penalty=2.0)
    forced, free = rows_of(own, own)
    logits = torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    tokens = Sampler(50).sample(logits.clone(), [forced, free], forced={0: 42})
    assert tokens[0].id == 42
    assert tokens[0].logprob == pytest.approx(logits[0].log_softmax(0)[42].item(), abs=1e-5)
    assert forced.generated == 1
    assert forced.uniform() == random.Random(1).random()  # none was drawn


def test_padding_of_the_logits_never_comes() -> None:
    logits = torch.zeros(3, 100)
    logits[:, 90:] = 50.0
    own = [GREEDY, SamplingParameters(seed=0), SamplingParameters(top_p=0.5, seed=0, logprobs=5)]
    tokens = Sampler(90).sample(logits, rows_of(*own), allowed(100, range(100), [], []), [True, False, False])
    assert all(token.id < 90 for token in tokens)
    assert tokens[2].logprob == pytest.approx(-math.log(90))


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
@pytest.mark.parametrize(
    "own", [GREEDY, SamplingParameters(), SamplingParameters(top_p=0.9), SamplingParameters(min_p=0.1)]
)
def test_logits_without_a_number_break_their_row_only(own: SamplingParameters, bad: float) -> None:
    size = 3000
    logits = torch.stack([torch.full((size,), bad), peaked(size)])
    rows = rows_of(own, GREEDY, stops=[END])
    tokens = Sampler(size).sample(logits.clone(), rows)
    assert [row.broken for row in rows] == [True, False]
    assert [token.id for token in tokens] == [END, logits[1].argmax().item()]


SEEDED = [
    SamplingParameters(seed=11),
    SamplingParameters(seed=12, temperature=0.7, top_p=0.9, frequency_penalty=0.2),
    SamplingParameters(seed=13, top_k=30, repetition_penalty=1.1),
    SamplingParameters(seed=14, min_p=0.05, logprobs=2),
]


def test_a_seed_gives_the_same_tokens_alone_and_in_a_batch() -> None:
    size, steps = 3000, 30
    logits = torch.randn(steps, len(SEEDED), size, generator=torch.Generator().manual_seed(9)) * 2
    sampler = Sampler(size)
    alone = []
    for place, own in enumerate(SEEDED):
        rows = rows_of(own)
        alone.append([sampler.sample(step[place : place + 1].clone(), rows)[0].id for step in logits])
    others = [GREEDY, *(SamplingParameters(top_p=0.8) for _ in range(6)), *(SamplingParameters() for _ in range(5))]
    rows, batch = rows_of(*others, *SEEDED), []
    for step in logits:
        noise = torch.randn(len(others), size)
        tokens = sampler.sample(torch.cat([noise, step]), rows)
        batch.append([token.id for token in tokens[len(others) :]])
    assert len(rows) == 16
    assert [list(tokens) for tokens in zip(*batch, strict=True)] == alone


def test_a_row_that_needs_more_candidates_keeps_its_place() -> None:
    """It comes behind a row that begins with as many, and they are all rows there are."""
    size = 3000
    logits = torch.stack([equal(size), peaked(size), equal(size)])
    own = [SamplingParameters(top_k=5), SamplingParameters(top_p=0.3), SamplingParameters(min_p=0.5)]
    wanted = [edges(kept(row.double().tolist(), one)) for row, one in zip(logits, own, strict=True)]
    for step in zip(*wanted, strict=False):
        rows = [Told(one, uniform) for one, (uniform, _) in zip(own, step, strict=True)]
        assert [token.id for token in Sampler(size).sample(logits.clone(), rows)] == [token for _, token in step]


def test_without_a_seed_replies_differ() -> None:
    rows, sampler = rows_of(SamplingParameters(), SamplingParameters()), Sampler(1000)
    replies = [[token.id for token in sampler.sample(torch.zeros(2, 1000), rows)] for _ in range(20)]
    first, second = zip(*replies, strict=True)
    assert first != second


def test_no_rows() -> None:
    assert Sampler(50).sample(torch.zeros(0, 50), []) == []
