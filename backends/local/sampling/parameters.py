"""How the tokens of one request are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

MAX_LOGPROBS = 20
"""Most alternatives a token can be asked for: OpenAI's limit for `top_logprobs`."""

GREEDY_BELOW = 1e-5
"""Temperatures below this take the most likely token, as in vLLM."""

_LARGEST = 3e38  # what a 32-bit float holds
_SEEDS = 1 << 63  # a seed is a signed 64-bit integer, as in OpenAI's API


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParameters:
    """Checked when made: a value out of range raises `ValueError`, which begins with the field's name.

    Names and meanings are those of vLLM's request body, of which OpenAI's is a part. Steps run in vLLM's
    order: `min_tokens`, `logit_bias`, penalties, `temperature`, `min_p`, `top_k`, `top_p`; each of the
    last three looks at the distribution that the one before left, normalised again.

    `temperature`: 0 takes the most likely token, and what comes after it in the order is without effect.
    `top_p`: the fewest tokens, most likely first, with at least this probability together.
    `top_k`: so many of the most likely; 0 or -1 for all. Of equally likely tokens the lower ids are taken.
    `min_p`: tokens at least this many times as likely as the most likely one.
    `presence_penalty`, `frequency_penalty`: taken from the logit of a token that was generated before,
    once, and for each time. `repetition_penalty`: positive logits of tokens in the prompt or generated
    are divided by it, others multiplied. `logit_bias`: added, by token id.
    `seed`: the same seed gives the same tokens for the same logits, whatever else is in the batch.
    `logprobs`: None for none, 0 for those of the chosen tokens, more for so many of the most likely beside
    it; they are the model's own, before anything above and before a grammar.
    `min_tokens`: the tokens that stop are barred until there are so many.
    `ignore_eos`: the end-of-text token does not stop the reply.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    seed: int | None = None
    logprobs: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        _check_number("temperature", self.temperature, "of 0 or more", lambda value: value >= 0)
        _check_number("top_p", self.top_p, "above 0 and at most 1", lambda value: 0 < value <= 1)
        _check_whole("top_k", self.top_k, "1 or more, or 0 or -1 for all tokens", lambda value: value >= -1)
        _check_number("min_p", self.min_p, "from 0 to 1", lambda value: 0 <= value <= 1)
        for name in ("presence_penalty", "frequency_penalty"):
            _check_number(name, getattr(self, name), "from -2 to 2", lambda value: -2 <= value <= 2)
        _check_number("repetition_penalty", self.repetition_penalty, "from 0.001 to 1000", lambda r: 1e-3 <= r <= 1e3)
        for token, bias in self.logit_bias.items():
            _check_whole("logit_bias", token, "0 or more, a token id", lambda value: value >= 0)
            _check_number("logit_bias", bias, "from -100 to 100", lambda value: -100 <= value <= 100)
        if self.seed is not None:
            _check_whole("seed", self.seed, "of 64 bits with a sign", lambda value: -_SEEDS <= value < _SEEDS)
        if self.logprobs is not None:
            _check_whole("logprobs", self.logprobs, f"from 0 to {MAX_LOGPROBS}", lambda k: 0 <= k <= MAX_LOGPROBS)
        _check_whole("min_tokens", self.min_tokens, "0 or more", lambda value: value >= 0)

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken each time."""
        return self.temperature < GREEDY_BELOW

    @property
    def penalises(self) -> bool:
        """Whether a token that has come changes how likely it is to come again."""
        return bool(self.presence_penalty or self.frequency_penalty) or self.repetition_penalty != 1

    def check_vocabulary(self, size: int) -> None:
        """Raise `ValueError` where `logit_bias` names a token that a vocabulary of `size` tokens does not have."""
        if (token := max(self.logit_bias, default=0)) >= size:
            raise ValueError(f"logit_bias: token ids below {size}, the model's vocabulary, not {token}")

    def for_choice(self, index: int) -> SamplingParameters:
        """Those of choice `index` of a request for several: with a seed, each choice has one of its own."""
        if self.seed is None or index == 0:
            return self
        return replace(self, seed=(self.seed + index + _SEEDS) % (2 * _SEEDS) - _SEEDS)


def _check_number(name: str, value: object, wanted: str, holds: Callable[[float], bool]) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST and holds(value)
    if not number:
        raise ValueError(f"{name}: a number {wanted}, not {value!r}")


def _check_whole(name: str, value: object, wanted: str, holds: Callable[[int], bool]) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not holds(value):
        raise ValueError(f"{name}: a whole number {wanted}, not {value!r}")
