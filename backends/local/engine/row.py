"""One job while it is generated: its tokens so far, and how much of them the cache holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamsieve.backends.local.engine.jobs import Job

if TYPE_CHECKING:
    from streamsieve.backends.local.sampling.sampler import RowSampler


@dataclass(slots=True, eq=False, repr=False)
class Row:
    """The state of a job on the engine's thread.

    `tokens`: the prompt and what came after it. `stored`: of how many of them the executor holds keys and
    values. A row whose last token alone is missing there is ready: its next step gives a token. `sampler` is
    made with the row's first step. `admitted`: the executor has or had it. `failure`: what its constraint raised; the
    row ends by it, the others go on.
    """

    job: Job
    tokens: list[int] = field(init=False)
    stored: int = 0
    sampler: RowSampler | None = None
    admitted: bool = False
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.tokens = list(self.job.prompt)

    @property
    def missing(self) -> int:
        """Tokens to prefill before the row is ready."""
        return len(self.tokens) - 1 - self.stored

    @property
    def generated(self) -> int:
        """Tokens of the reply."""
        return len(self.tokens) - len(self.job.prompt)
