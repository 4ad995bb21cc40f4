"""What constraints have a say in: masks, forced tokens, and failing without taking others along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from streamsieve.backends.local.engine.jobs import Job
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.token_choice import TokenChoice
from streamsieve.backends.local.sampling.parameters import SamplingParameters

VOCABULARY = 70
LIKELIEST = 7


@dataclass
class Script:
    """Allows `allowed` (None: all), or forces a token; raises where told to."""

    allowed: int | None = None
    force: int | None = None
    raises: str = ""
    taken: list[int] = field(default_factory=list)
    done: bool = False

    def forced(self) -> int | None:
        self._may_raise("forced")
        return self.force

    def fill(self, bitmask: Tensor, row: int) -> bool:
        self._may_raise("fill")
        if self.allowed is None:
            return False
        bitmask[row] = 0
        bitmask[row, self.allowed // 32] = 1 << self.allowed % 32
        return True

    def accept(self, token: int) -> None:
        self._may_raise("accept")
        self.taken.append(token)

    def _may_raise(self, name: str) -> None:
        if name == self.raises:
            raise RuntimeError(f"{name} raised")


def row(constraint: Script | None) -> Row:
    return Row(Job([1], SamplingParameters(temperature=0), 9, frozenset(), constraint))


def logits(rows: int) -> Tensor:
    scores = torch.zeros(rows, VOCABULARY)
    scores[:, LIKELIEST] = 1.0
    return scores


def chosen(choice: TokenChoice, rows: list[Row]) -> Mapping[Row, int]:
    return {row: token.id for row, token in choice.choose(rows, logits(len(rows)))}


def test_each_row_has_its_own_say() -> None:
    scripts = [None, Script(), Script(allowed=65), Script(force=3), Script(allowed=0)]
    rows = [row(script) for script in scripts]
    choice = TokenChoice(8, VOCABULARY, torch.device("cpu"))
    expected = [LIKELIEST, LIKELIEST, 65, 3, 0]
    assert list(chosen(choice, rows).values()) == expected
    assert [script.taken for script in scripts if script] == [[token] for token in expected[1:]]
    scripts[2].allowed = None  # type: ignore[union-attr]  # it is a Script
    assert list(chosen(choice, rows).values()) == [LIKELIEST, LIKELIEST, LIKELIEST, 3, 0]  # its old mask is not used


@pytest.mark.parametrize("raises", ["forced", "fill", "accept"])
def test_a_constraint_that_raises_fails_its_row_alone(raises: str) -> None:
    bad, good, free = row(Script(raises=raises)), row(Script(allowed=5)), row(None)
    choice = TokenChoice(8, VOCABULARY, torch.device("cpu"))
    assert chosen(choice, [bad, good, free]) == {good: 5, free: LIKELIEST}
    assert str(bad.failure) == f"{raises} raised"
    assert good.failure is None


def test_scores_that_are_no_numbers_fail_their_row_alone() -> None:
    bad, good = row(None), row(None)
    scores = logits(2)
    scores[0] = torch.nan
    choice = TokenChoice(8, VOCABULARY, torch.device("cpu"))
    assert [(each, token.id) for each, token in choice.choose([bad, good], scores)] == [(good, LIKELIEST)]
    assert isinstance(bad.failure, ArithmeticError)
