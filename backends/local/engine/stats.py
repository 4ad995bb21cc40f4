"""The engine's numbers, for `/metrics` and `/health`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

_WINDOW = 10.0  # seconds that `tokens_per_second` looks back


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers since the engine started, or of now (`queued`, `running`, `tokens_per_second`, `cache_*`).

    `prompt_tokens` were read, `cached_tokens` of prompts did not have to be. `tokens_per_second`: generated, the
    mean of the last ten seconds. `cache_filled` and `cache_capacity` are token positions. `finished` jobs came to
    their own end. `failures`: steps that raised or took too long.
    """

    queued: int
    running: int
    generated_tokens: int
    prompt_tokens: int
    cached_tokens: int
    tokens_per_second: float
    cache_filled: int
    cache_capacity: int
    finished: int
    failures: int


@dataclass(slots=True)
class Counts:
    """What adds up. Used under the engine's lock."""

    generated: int = 0
    prompts: int = 0
    cached: int = 0
    finished: int = 0
    failures: int = 0
    seconds_per_job: float = 1.0
    """A mean that forgets, from the first token's step to the last."""
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def step(self, now: float, tokens: int) -> None:
        """A step gave `tokens` at `now` (`time.monotonic()`)."""
        self.generated += tokens
        self._recent.append((now, tokens))
        self._forget(now)

    def job(self, seconds: float) -> None:
        """A job came to its end after `seconds`."""
        self.finished += 1
        self.seconds_per_job += 0.2 * (seconds - self.seconds_per_job)

    def rate(self, now: float) -> float:
        """Tokens a second, lately."""
        self._forget(now)
        return sum(tokens for _, tokens in self._recent) / _WINDOW

    def _forget(self, now: float) -> None:
        while self._recent and self._recent[0][0] < now - _WINDOW:
            self._recent.popleft()
