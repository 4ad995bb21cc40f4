"""A reply of `replay`: the same recorded text for every choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamsieve.backends.reply import Piece, Usage
from streamsieve.backends.reply_writer import ChatWriter
from streamsieve.wire.json_text import JsonObject

TOKEN_CHARACTERS = 4
"""What counts as a token in `usage` and `max_tokens`: there is no tokenizer here."""


@dataclass(slots=True)
class ChatReply:
    """The same raw text for every choice, under one id."""

    model: str
    text: str
    finish_reason: str
    choices: int
    prompt_characters: int
    _writer: ChatWriter = field(init=False)

    def __post_init__(self) -> None:
        self._writer = ChatWriter(self.model)

    def whole(self) -> JsonObject:
        """The body of a reply that is not streamed."""
        piece = Piece(text=self.text, finish_reason=self.finish_reason)
        return self._writer.whole([piece] * self.choices, self._usage())

    def opening(self) -> Iterator[JsonObject]:
        """The first chunk of each choice: the role, and no text."""
        yield from map(self._writer.opening, range(self.choices))

    def deltas(self, size: int) -> Iterator[JsonObject]:
        """The text in pieces of `size` code points, the choices in turn."""
        for start in range(0, len(self.text), size):
            piece = Piece(text=self.text[start : start + size])
            for index in range(self.choices):
                yield self._writer.chunk(index, piece)

    def closing(self, include_usage: bool) -> Iterator[JsonObject]:
        """The finish chunk of each choice, then the usage chunk where it is wanted."""
        for index in range(self.choices):
            yield self._writer.chunk(index, Piece(finish_reason=self.finish_reason))
        if include_usage:
            yield self._writer.usage_chunk(self._usage())

    def _usage(self) -> Usage:
        return Usage(_tokens(self.prompt_characters), _tokens(len(self.text)) * self.choices)


def _tokens(characters: int) -> int:
    return -(-characters // TOKEN_CHARACTERS)
