"""Sampling parameters: what is refused, and what the rest of the engine reads off them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streamsieve.backends.local.sampling.sampler import SamplingParameters

LARGE = 10**400  # JSON may hold it, a float cannot

REFUSED: list[tuple[str, Any]] = [
    *(("temperature", value) for value in (-0.1, math.inf, math.nan, LARGE, "1", None, True)),
    *(("top_p", value) for value in (0, -0.5, 1.01, math.nan, "0.9")),
    *(("top_k", value) for value in (-2, 1.5, True, "5")),
    *(("min_p", value) for value in (-0.1, 1.1, math.nan)),
    *(("presence_penalty", value) for value in (-2.1, 2.1, math.nan)),
    *(("frequency_penalty", value) for value in (-2.1, 2.1, math.inf)),
    *(("repetition_penalty", value) for value in (0, -1, math.inf, 1e-9, LARGE)),
    *(("logit_bias", value) for value in ({-1: 1}, {1: 101}, {1: math.nan}, {"1": 1}, {1.5: 1})),
    *(("seed", value) for value in (1.5, 2**63, -(2**63) - 1, "x", True)),
    *(("logprobs", value) for value in (-1, 21, 1.0, True)),
    *(("min_tokens", value) for value in (-1, 0.5)),
]

ACCEPTED: list[tuple[str, Any]] = [
    *(("temperature", value) for value in (0, 0.0, 2, 7.5)),
    *(("top_p", value) for value in (1, 1e-9)),
    *(("top_k", value) for value in (-1, 0, 1, 10**9)),
    *(("min_p", value) for value in (0, 1)),
    *(("presence_penalty", value) for value in (-2, 2)),
    *(("frequency_penalty", value) for value in (-2, 2)),
    *(("repetition_penalty", value) for value in (0.001, 1000)),
    *(("logit_bias", value) for value in ({}, {0: -100, 5: 100})),
    *(("seed", value) for value in (None, -(2**63), 2**63 - 1)),
    *(("logprobs", value) for value in (None, 0, 20)),
    *(("min_tokens", value) for value in (0, 10)),
]


@pytest.mark.parametrize(("field", "value"), REFUSED, ids=str)
def test_what_is_out_of_range_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field}: ") as refused:
        SamplingParameters(**{field: value})
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize(("field", "value"), ACCEPTED, ids=str)
def test_the_ends_of_each_range_are_in_it(field: str, value: Any) -> None:
    assert getattr(SamplingParameters(**{field: value}), field) == value


def test_a_token_that_the_vocabulary_lacks_is_refused() -> None:
    parameters = SamplingParameters(logit_bias={3: 1.0, 99: -1.0})
    parameters.check_vocabulary(100)
    with pytest.raises(ValueError, match=r"^logit_bias: token ids below 99, .* not 99$"):
        parameters.check_vocabulary(99)


@pytest.mark.parametrize(("temperature", "greedy"), [(0, True), (1e-6, True), (1e-4, False), (1, False)])
def test_temperature_near_zero_is_greedy(temperature: float, greedy: bool) -> None:
    assert SamplingParameters(temperature=temperature).greedy is greedy


@pytest.mark.parametrize(
    ("seed", "seeds"), [(None, [None] * 3), (7, [7, 8, 9]), (2**63 - 1, [2**63 - 1, -(2**63), -(2**63) + 1])]
)
def test_each_choice_has_a_seed_of_its_own(seed: int | None, seeds: list[int | None]) -> None:
    parameters = SamplingParameters(seed=seed)
    assert [parameters.for_choice(index).seed for index in range(3)] == seeds
