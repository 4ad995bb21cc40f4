"""Holds a grammar back while a reply thinks, and ends thinking that takes too long."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence

from torch import Tensor

from streamsieve.backends.local.constraints.bound_text import BoundText, Grammar, Piece
from streamsieve.backends.local.constraints.literals import Literals
from streamsieve.backends.local.constraints.vocabulary import Vocabulary
from streamsieve.parsers.thinking_watch import MessageWatch, Phase, ThinkingWatch

_REST = 3
"""Tokens that a character wants at most behind its first: each is a byte of it at least."""


class Gate:
    """The constraint of one reply: thinking is free, and what comes behind it is bound by `grammar` (None: by nothing).

    In a message format it is a part of the grammar; `messages` tells of it then, where there is a budget.
    `budget`: how many tokens the thinking may have; then its closing marker is written, by its tokens in `closings`.
    The border between the two is exact to the character. A token that ends the thinking may have text behind its end
    only where the grammar takes that, and where the grammar demands something, the reply does not end before it.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        grammar: Grammar | None,
        watch: ThinkingWatch,
        *,
        budget: int | None = None,
        closings: Mapping[str, Sequence[int]] | None = None,
        messages: MessageWatch | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._bound: BoundText | None = grammar.start() if grammar else None
        self._watch = watch
        self._messages = messages
        self._budget = budget
        self._closings = closings or {}
        self._forced: list[int] = []
        self._thought = 0
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._fits = True
        """Whether the grammar takes what a reply at its start has written."""
        self._prepare()

    def _prepare(self) -> None:
        """Set out what thinking may not have."""
        self._free_row = _combined(self._stops_barred(), self._ends_barred())
        self._ends = Literals(self._vocabulary, self._typed(), self._may_end_with)

    # -- what may come --

    def forced(self) -> int | None:
        """A token of the thinking's closing marker, once the budget is used up."""
        if not self._forced and self._is_overdue:
            self._forced = list(self._closings[(self._messages or self._watch).closer])
        return self._forced[0] if self._forced else None

    @property
    def _is_overdue(self) -> bool:
        if not self._is_thinking or self._budget is None or self._thought < self._budget:
            return False
        unfinished, _ = self._decode.getstate()  # of a character, which comes to its end first where it has one
        return not unfinished or self._thought >= self._budget + _REST

    @property
    def _is_thinking(self) -> bool:
        return self._messages.is_thinking if self._messages else self._watch.phase is Phase.THINKING

    def fill(self, bitmask: Tensor, row: int) -> bool:
        """Write the row of allowed tokens; False where all are."""
        allowed = self._row()
        if allowed is None:
            return False
        bitmask[row].copy_(allowed)
        return True

    def _row(self) -> Tensor | None:
        match self._watch.phase:
            case Phase.ENDED:
                return self._bound.row() if self._bound else None
            case Phase.THINKING:
                return _combined(self._free_row, self._ends.row(self._ends.tail(self._watch.pending.encode())))
            case Phase.START:
                return self._start_row()

    def _start_row(self) -> Tensor | None:
        """What the grammar takes, or what leads to an opener of thinking."""
        if self._bound is None:
            return None
        bound = self._bound.row() if self._fits else self._vocabulary.row(())
        if bound is None or self._budget == 0:
            return bound
        if self._watch.pending in self._watch.openers:  # it may still become a longer one, but thinking it is
            return self._free_row
        return bound | self._vocabulary.row(self._opening_tokens())

    def _opening_tokens(self) -> set[int]:
        """The tokens that go on with an opener, or begin one."""
        written = self._watch.pending
        tokens: set[int] = set()
        for opener in self._watch.openers:
            special = next((piece for piece in self._vocabulary.split(opener) if isinstance(piece, int)), None)
            is_spelled = special is not None and 0 < len(written) < len(self._vocabulary.texts[special].decode())
            if is_spelled or not opener.startswith(written):
                continue
            first = next(self._vocabulary.split(opener[len(written) :]))
            if isinstance(first, int):
                tokens.add(first)
                continue
            tokens.update(self._vocabulary.leading_to(first.encode()))
            if written + first == opener:
                tokens.update(token for token, _ in self._vocabulary.beginning_with(first.encode()))
        return tokens

    # -- what came --

    def accept(self, token: int) -> None:
        """Take the token that came. Raises RuntimeError for one that was not allowed."""
        if self._forced and token == self._forced[0]:
            self._forced.pop(0)
        phase = self._watch.phase
        if phase is Phase.ENDED:
            self._take(token)
            if self._messages:
                self._thought += self._messages.is_thinking
                self._messages.feed(self._text(token), [token])
            return
        if phase is Phase.START and self._bound:
            self._fits = self._fits and self._bound.accept(token)
        self._watch.feed(self._text(token), [token])
        self._thought += self._watch.begun
        match phase, self._watch.phase:
            case (Phase.START, Phase.THINKING):
                self._thinks()
            case (Phase.THINKING, Phase.ENDED):
                self._hand_over()

    def _text(self, token: int) -> str:
        return self._decode.decode(self._vocabulary.texts[token])

    def _take(self, token: int) -> None:
        if self._bound and not self._bound.accept(token):
            raise RuntimeError(f"token {token} came where the grammar does not have it")

    def _thinks(self) -> None:
        """The reply began to think after all: nothing that the grammar binds is written yet."""
        if self._bound:
            self._bound.restart()
        self._prepare()

    def _hand_over(self) -> None:
        unfinished, _ = self._decode.getstate()
        pieces = self._behind(self._watch.opener, self._watch.rest.encode() + unfinished)
        if self._bound and not self._bound.accept_written(pieces):
            raise RuntimeError("the grammar does not take what was written behind the thinking")

    @property
    def done(self) -> bool:
        """Whether nothing but the end may come."""
        return self._watch.phase is Phase.ENDED and self._bound is not None and self._bound.done

    # -- the border --

    def _typed(self) -> list[str]:
        """Those of the ends of thinking that are plain text; of others only their tokens count."""
        return [one for one in self._watch.ends if all(isinstance(piece, str) for piece in self._vocabulary.split(one))]

    def _behind(self, opener: str, rest: bytes) -> list[Piece]:
        """What the grammar has to take of a reply whose thinking ended so."""
        return [*self._vocabulary.split(opener), *([rest] if rest else [])]

    def _may_end_with(self, literal: bytes, behind: bytes) -> bool:
        """Whether thinking may end with this marker in a token that has `behind` behind it."""
        end = literal.decode()
        pieces = self._behind(end if self._watch.ends[end] else "", behind)
        return self._bound is None or not pieces or self._bound.may_begin(pieces)

    def _ends_barred(self) -> Tensor | None:
        """Bars the special tokens with which calls begin that the grammar does not take."""
        barred = set()
        for end, is_call in self._watch.ends.items():
            pieces = list(self._vocabulary.split(end))
            first = next((piece for piece in pieces if isinstance(piece, int)), None)
            if is_call and first is not None and self._bound and not self._bound.may_begin(pieces):
                barred.add(first)
        return self._vocabulary.row_without(barred) if barred else None

    def _stops_barred(self) -> Tensor | None:
        """Bars the end of the reply while something is demanded of it."""
        if self._bound is None or self._bound.may_end:
            return None
        return ~self._vocabulary.stop_row


def _combined(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """What both rows allow."""
    if one is None or other is None:
        return one if other is None else other
    return one & other
