"""What runs the model for the engine: slots of our own, or the continuous batching of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.scheduler import Work
from streamsieve.backends.local.sampling.token import Token


@dataclass(frozen=True, slots=True)
class Usage:
    """Positions of the cache: those that running rows fill, and those that there may be at most."""

    filled: int
    capacity: int


class Executor(Protocol):
    """Runs rows. All of it is called on one thread, in inference mode, `usage` and `rows` apart."""

    @property
    def rows(self) -> int:
        """How many rows run at once."""

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence, prompt and reply."""

    def admit(self, row: Row) -> bool:
        """Give `row` a place; False where there is none now, never so while no other row runs.

        Sets `row.stored` where some of its prompt is known, and `row.job.cached_tokens` with it.
        """

    def prepare(self) -> Sequence[Row]:
        """Make room for the next token of each row. The rows that had to leave for that, newest first."""

    def held(self, row: Row) -> bool:
        """Whether `row` had better wait, since another row is reading the prompt that they share."""

    def step(self, work: Work) -> Sequence[tuple[Row, Token]]:
        """Do `work`: rows with the tokens that they got, which their constraints have taken, but not yet `row.tokens`.

        A row whose constraint raised has `row.failure` and gets none.
        """

    def release(self, row: Row) -> None:
        """`row` runs no more; what is stored of it may serve others."""

    def close(self) -> None:
        """Give back the memory and what else is held."""

    @property
    def usage(self) -> Usage:
        """How full the cache is."""
