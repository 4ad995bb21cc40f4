"""What the engine is asked for: jobs, and the ways they can fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from streamsieve.backends.local.constraints.constraint import Constraint
    from streamsieve.backends.local.sampling.parameters import SamplingParameters

FinishReason = Literal["stop", "length", "error", "cancelled"]
"""`stop`: a stop token, or a grammar that is complete. `length`: `max_tokens`, or the model's longest
sequence. `error`: the engine failed while the job ran. `cancelled`: nobody waits for it any more."""


@dataclass(slots=True, eq=False, repr=False)
class Job:
    """One reply to generate.

    `prompt`: token ids, at least one. `max_tokens`: of the reply, at least one; a reply that reaches the
    model's longest sequence ends before that. `stop_token_ids` end the reply; the one that did is its last
    token. `constraint` and what `sampling` remembers belong to this job alone.

    The engine sets the rest: `finish_reason` before the last tokens are delivered, `cached_tokens`, the
    tokens of the prompt that were not computed because another reply had left them, with the first ones.
    """

    prompt: Sequence[int]
    sampling: SamplingParameters
    max_tokens: int
    stop_token_ids: frozenset[int]
    constraint: Constraint | None = None
    finish_reason: FinishReason | None = field(default=None, init=False)
    cached_tokens: int = field(default=0, init=False)


class QueueFull(Exception):
    """As many jobs wait as may; `retry_after` is a guess of the seconds until one more may."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the queue is full; try again in {retry_after} s")
        self.retry_after = retry_after


class PromptTooLong(ValueError):
    """The prompt leaves no room for a reply: `length` tokens, where a sequence holds `limit` at most."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"the prompt has {length} tokens; prompt and reply together hold {limit} at most")
        self.length = length
        self.limit = limit


class EngineDead(Exception):
    """The engine takes no jobs: it was never started, has stopped, or failed too often in a row."""


class EngineFailed(Exception):
    """A step of the model failed, or took too long, while the job ran; what it had generated is lost."""
