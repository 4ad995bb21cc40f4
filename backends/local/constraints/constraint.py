"""What binds the tokens of one reply, as the engine sees it."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Constraint(Protocol):
    """Which tokens may come next in one reply. One object a job; all of it is used on the engine's thread.

    A step asks `forced` first, then `fill` where nothing is forced, and tells `accept` the token that came.
    """

    def forced(self) -> int | None:
        """The one token that has to come now, whatever the model would say; None where the model may choose."""

    def fill(self, bitmask: Tensor, row: int) -> bool:
        """Write the tokens that are allowed now into `bitmask[row]` (int32, one bit a token, xgrammar's layout).

        False where every token is: the row is left as it was.
        """

    def accept(self, token: int) -> None:
        """Take the token that came, an end-of-turn token too."""

    @property
    def done(self) -> bool:
        """Whether nothing but the end of the turn may come any more."""
