"""The text of a reply as its tokens come."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers.decoders import DecodeStream

from streamsieve.backends.local.server.tokenizer import Tokenizer

_CONTEXT = 8
"""Tokens of the prompt that the first token of a reply is decoded after: some tokenizers write a leading space or
not by what stands before."""
_HALF = "\N{REPLACEMENT CHARACTER}"
_CHARACTER = 3
"""Tokens that an unfinished character has at most: each is a byte of it at least."""
_WAITING = 16
"""Tokens without text after which the first are no part of an unfinished character, but bytes that are none."""


class Detokenizer:
    """Whole characters only: a token that ends within one gives its text with the token that completes it. Bytes that
    nothing completes come out as U+FFFD a few tokens later.

    Special tokens are text, since parsers look for them.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = (), *, skip_special: bool = False) -> None:
        context = list(prompt[-_CONTEXT:])
        if tokenizer.decode(context).endswith(_HALF):  # it would come out with the reply
            context = []
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._stream = DecodeStream(ids=context, skip_special_tokens=skip_special)
        self._waiting: list[int] = []

    def feed(self, id: int) -> str | None:
        """The text that is complete with this token; None where none is yet."""
        text = self._stream.step(self._tokenizer.fast, id)
        if text:
            self._waiting = []
            return text
        self._waiting.append(id)
        return self._give_up() if len(self._waiting) >= _WAITING else None

    def _give_up(self) -> str | None:
        """Go on with the last few tokens alone: the stream would keep all, and decode them again for each new one."""
        given_up, kept = self._waiting[:-_CHARACTER], self._waiting[-_CHARACTER:]
        text = self._tokenizer.decode(given_up, skip_special=self._skip_special)
        self._stream, self._waiting = DecodeStream(ids=[], skip_special_tokens=self._skip_special), []
        return text + "".join(self.feed(id) or "" for id in kept) or None
