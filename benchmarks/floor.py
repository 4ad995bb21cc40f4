"""The floor that costs are compared with, and how both are measured."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping

import orjson

DELTA_LENGTH = 4
"""Characters a delta, about one token."""

_LOOPS = 20_000


def chunk(delta: object, finish_reason: str | None = None) -> bytes:
    """A chat chunk as vLLM writes it; about 240 bytes with one text delta."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason, "token_ids": None}
    return orjson.dumps(
        {
            "id": "chatcmpl-7f3c9a1e2b7d4c6f8a90b1c2d3e4f506",
            "object": "chat.completion.chunk",
            "created": 1764452000,
            "model": "Qwen/Qwen3-8B",
            "choices": [choice],
        }
    )


def floor() -> float:
    """Seconds for decoding and encoding one chunk with one text delta."""
    data = chunk({"content": " the"})
    loads, dumps = orjson.loads, orjson.dumps
    start = time.perf_counter()
    for _ in range(_LOOPS):
        dumps(loads(data))
    return (time.perf_counter() - start) / _LOOPS


def best_in_turns(subjects: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The least of what each subject says it took, measured in turns: noise hits all of them alike."""
    best = dict.fromkeys(subjects, float("inf"))
    for _ in range(rounds):
        for name, measure in subjects.items():
            gc.collect()
            best[name] = min(best[name], measure())
    return best
