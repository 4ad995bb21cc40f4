"""The memory of a server over the time of a soak."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

GROWTH = 1.1
"""How much larger a server's memory may be in the last quarter of the time than in the second."""


def growth(sizes: Sequence[int]) -> float:
    """The last quarter of `sizes` to the second one: in the first a server takes what it needs."""
    quarter = max(1, len(sizes) // 4)
    return statistics.mean(sizes[-quarter:]) / statistics.mean(sizes[quarter : 2 * quarter])


def figures(sizes: Sequence[int]) -> Mapping[str, object]:
    """For the report of a soak: some twelve of `sizes`, which are bytes, and their growth."""
    some = [round(size / 1e6, 1) for size in sizes[:: max(1, len(sizes) // 12)]]
    return {"memory_mb": some, "memory_growth": round(growth(sizes), 3)}
