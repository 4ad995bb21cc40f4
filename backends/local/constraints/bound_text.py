"""The part of a reply that a grammar binds, token by token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor
from xgrammar import CompiledGrammar, GrammarMatcher

from streamsieve.backends.local.constraints.literals import Literals
from streamsieve.backends.local.constraints.vocabulary import Vocabulary, is_allowed

Piece = str | bytes | int
"""Text, or a special token by its number."""


@dataclass(frozen=True, eq=False)
class Grammar:
    """A compiled grammar.

    `witness`: see `Vocabulary.witness`. `barred`: text that its free text may not have. `has_lengths`: whether it has
    strings of JSON with a least or a greatest length, in which xgrammar allows control characters that JSON does not.
    """

    compiled: CompiledGrammar
    vocabulary: Vocabulary
    _: KW_ONLY
    witness: int | None
    barred: Sequence[str] = ()
    has_lengths: bool = False

    def start(self) -> BoundText:
        """The text of one reply, which nothing is written of yet."""
        return BoundText(self)

    @property
    def demands(self) -> bool:
        """Whether something has to come: a reply may not be empty."""
        return not self.start().may_end


class BoundText:
    """What one reply has written of what its grammar wants."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._vocabulary = grammar.vocabulary
        self._matcher = GrammarMatcher(grammar.compiled)
        self._buffer = torch.empty((1, -(-grammar.vocabulary.size // 32)), dtype=torch.int32)
        self._row: Tensor | None = None
        self._is_filled = False
        self._barred = Literals(grammar.vocabulary, grammar.barred) if grammar.barred else None
        self._tail = b""
        self._last_byte = 0

    @property
    def may_end(self) -> bool:
        """Whether the reply may end here."""
        return self._matcher.is_terminated() or self._matcher.is_completed()

    @property
    def done(self) -> bool:
        """Whether it has to."""
        if self._matcher.is_terminated():
            return True
        if not self._matcher.is_completed():
            return False
        row = self.row()
        return row is not None and torch.equal(row, self._vocabulary.stop_row)

    def row(self) -> Tensor | None:
        """The tokens that may come now; None where all may. Not to be changed."""
        if not self._is_filled:
            self._row = self._fill()
            self._is_filled = True
        return self._row

    def _fill(self) -> Tensor | None:
        if self._matcher.is_terminated():
            return self._vocabulary.stop_row
        if not self._matcher.fill_next_token_bitmask(self._buffer, 0):
            return None
        row = self._buffer[0]
        if self._last_byte in self._vocabulary.second_byte_rows:
            row &= self._vocabulary.second_byte_rows[self._last_byte]
        if self._grammar.has_lengths and self._vocabulary.is_in_counted_string(row):
            row &= self._vocabulary.json_row
        witness = self._grammar.witness
        if witness is None or not is_allowed(row, witness):
            return row
        if not self._matcher.is_completed():  # within a value: in free text, the reply could end
            row &= self._vocabulary.plain_row
        elif self._barred is not None and (barring := self._barred.row(self._tail)) is not None:
            row &= barring
        return row

    def accept(self, token: int) -> bool:
        """Take the token that came; False where it may not, and nothing changes."""
        if self._matcher.is_terminated() or not self._matcher.accept_token(token):
            return False
        self._is_filled = False
        text = self._vocabulary.texts[token]
        self._last_byte = text[-1] if text else 0
        if self._barred is not None:
            self._tail = self._barred.tail(self._tail + text)
        return True

    def accept_written(self, pieces: Iterable[Piece]) -> bool:
        """Take what was written before the grammar was in force: text, and special tokens by their numbers.

        False where it may not stand at the beginning; nothing changes then.
        """
        return self._written(pieces) is not None

    def _written(self, pieces: Iterable[Piece]) -> int | None:
        """Take `pieces`; returns how many steps of the matcher they were."""
        taken = 0
        for piece in pieces:
            self._is_filled = False
            if isinstance(piece, int):
                accepted = self._matcher.accept_token(piece)
            elif not (accepted := self._matcher.accept_string(piece)) and self._is_free:
                continue  # where calls begin with tokens, xgrammar sees tokens alone
            if not accepted:
                self._matcher.rollback(taken)
                return None
            taken += 1
        self._is_filled = False
        return taken

    @property
    def _is_free(self) -> bool:
        witness, row = self._grammar.witness, self.row()
        return self._matcher.is_completed() and (row is None or (witness is not None and is_allowed(row, witness)))

    def may_begin(self, pieces: Sequence[Piece]) -> bool:
        """Whether `pieces` may be taken here; nothing changes."""
        if (taken := self._written(pieces)) is None:
            return False
        self._matcher.rollback(taken)
        self._is_filled = False
        return True

    def restart(self) -> None:
        """Forget what was written."""
        self._matcher.reset()
        self._last_byte = 0
        self._is_filled = False
        self._tail = b""
