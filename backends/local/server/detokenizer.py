"""The text of a reply as its tokens come."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers.decoders import DecodeStream

from streamsieve.backends.local.server.tokenizer import Tokenizer

_CONTEXT = 8
"""Tokens of the prompt that the first token of a reply is decoded after: some tokenizers write a leading space or
not by what stands before."""
_HALF = "\N{REPLACEMENT CHARACTER}"


class Detokenizer:
    """Whole characters only: a token that ends within one gives its text with the token that completes it.

    Special tokens are text, since parsers look for them.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = (), *, skip_special: bool = False) -> None:
        context = list(prompt[-_CONTEXT:])
        if tokenizer.decode(context).endswith(_HALF):  # it would come out with the reply
            context = []
        self._tokenizer = tokenizer.fast
        self._stream = DecodeStream(ids=context, skip_special_tokens=skip_special)

    def feed(self, id: int) -> str | None:
        """The text that is complete with this token; None where none is yet."""
        return self._stream.step(self._tokenizer, id) or None
