"""A reply as any source gives it: pieces of raw text, choice by choice, and what they cost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token of a reply and how likely it was.

    `text`: the token's own text, which may be part of a character; `bytes` are all that it stands for.
    `logprob`: natural. `top`: the likeliest tokens at its place, best first.
    """

    text: str
    bytes: bytes
    logprob: float
    top: Sequence[TokenLogprob] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What is new of one choice. The last piece of a choice has its `finish_reason`, and may have text too.

    `token_ids`, `logprobs`: those of `text`, where the source knows them. `stop_reason`: the stop string or
    token that ended it, None for the end of the turn.
    """

    text: str = ""
    token_ids: Sequence[int] | None = None
    logprobs: Sequence[TokenLogprob] | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply cost, in tokens. `cached`: those of the prompt that were not computed again."""

    prompt: int
    completion: int
    cached: int | None = None


@dataclass(slots=True)
class Reply:
    """A reply that is being written. Each generator is one choice, is read once, and is closed by who reads it.

    `usage` is asked when all choices have ended; None where the source does not count.
    """

    choices: Sequence[AsyncGenerator[Piece, None]]
    usage: Callable[[], Usage | None] = field(default=lambda: None)


def joined(pieces: Iterable[Piece]) -> Piece:
    """One piece that says what all of them said."""
    text: list[str] = []
    token_ids: list[int] = []
    logprobs: list[TokenLogprob] = []
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    for piece in pieces:
        text.append(piece.text)
        token_ids += piece.token_ids or ()
        logprobs += piece.logprobs or ()
        finish_reason = piece.finish_reason or finish_reason
        stop_reason = piece.stop_reason if piece.stop_reason is not None else stop_reason
    return Piece(
        text="".join(text),
        token_ids=token_ids or None,
        logprobs=logprobs or None,
        finish_reason=finish_reason,
        stop_reason=stop_reason,
    )
