"""Which tokens complete one of a few literals, seen from what was written last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from torch import Tensor

from streamsieve.backends.local.constraints.vocabulary import Vocabulary

Allowed = Callable[[bytes, bytes], bool]
"""Whether a literal may be completed with this text behind it."""


class Literals:
    """Literals that are written as plain text, and the tokens that may not complete one.

    `allowed` says which completions are none the less allowed, by the literal and what the token has behind it.
    """

    def __init__(
        self, vocabulary: Vocabulary, literals: Iterable[str], allowed: Allowed = lambda literal, behind: False
    ) -> None:
        self._vocabulary = vocabulary
        self._literals = tuple(literal.encode() for literal in literals)
        self._allowed = allowed
        self._longest = max(map(len, self._literals), default=1)
        self._rows: dict[bytes, Tensor | None] = {}

    def tail(self, written: bytes) -> bytes:
        """As much of the end of `written` as may be the beginning of a literal."""
        end = written[-self._longest + 1 :] if self._longest > 1 else b""
        while end and not any(literal.startswith(end) for literal in self._literals):
            end = end[1:]
        return end

    def row(self, tail: bytes) -> Tensor | None:
        """All tokens but those that may not come behind `tail`; None where all may. Not to be changed."""
        if tail not in self._rows:
            barred = {token for token, literal, behind in self.completing(tail) if not self._allowed(literal, behind)}
            self._rows[tail] = self._vocabulary.row_without(barred) if barred else None
        return self._rows[tail]

    def completing(self, tail: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """The tokens that complete a literal begun in `tail` or in themselves, which, and what they have behind it."""
        for literal in self._literals:
            for start in range(len(tail) + 1):
                begun = tail[start:]
                if len(begun) < len(literal) and literal.startswith(begun):
                    left = literal[len(begun) :]
                    for token, text in self._vocabulary.beginning_with(left):
                        yield token, literal, text[len(left) :]
            for token, text in self._vocabulary.holding(literal):
                yield token, literal, text[text.index(literal) + len(literal) :]
