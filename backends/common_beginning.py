"""How far two texts, or two lists of tokens, are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def common_beginning(one: Sequence[T], other: Sequence[T]) -> int:
    """How many items the two, of one type, begin with alike. By comparing slices, which runs at the speed of C."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    step = 16
    while one[low : low + step] == other[low : low + step]:
        low, step = low + step, 2 * step
    high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low
