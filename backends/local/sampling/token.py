"""What sampling gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Token:
    """One generated token.

    `logprob`: its natural log probability, None where none were asked for. `top`: the likeliest tokens and
    theirs, best first, as many as were asked for.
    """

    id: int
    logprob: float | None = None
    top: Sequence[tuple[int, float]] = ()
