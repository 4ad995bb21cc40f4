"""Special tokens told apart from the same characters typed as text, where a source has token ids."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from streamsieve.parsers.errors import ConfigurationError


@dataclass(frozen=True)
class SpecialTokens:
    """The tokens of one tokenizer that stand for a marker as a whole: id to text.

    These are its added tokens, whether it calls them special or not: a model that means the marker
    writes the one token, a model that quotes it spells it out.
    """

    texts: Mapping[int, str]

    @classmethod
    def load(cls, path: str | Path) -> SpecialTokens:
        """Those in a `tokenizer.json`, or in the folder that has one.

        Raises ConfigurationError where there is none, or it lists no added tokens.
        """
        file = Path(path)
        file = file / "tokenizer.json" if file.is_dir() else file
        try:
            added = json.loads(file.read_text(encoding="utf-8"))["added_tokens"]
            texts = {int(token["id"]): str(token["content"]) for token in added}
        except OSError as error:
            raise ConfigurationError(f"tokenizer: {file}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"tokenizer: no added_tokens in {file}: {error!r}") from error
        return cls(texts)

    def places(self, text: str, token_ids: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Where in `text`, the text of `token_ids`, special tokens stand, in order: start and end.

        Where one delta holds both a token and the same characters typed, the first are taken for the
        token; sources that can tell feed token by token.
        """
        at = 0
        for token_id in token_ids:
            special = self.texts.get(token_id)
            if special and (start := text.find(special, at)) >= 0:
                at = start + len(special)
                yield start, at


class TokenPlaces:
    """Where special tokens stand in what was fed so far, by offset in the reply."""

    __slots__ = ("_ends", "_texts")

    def __init__(self, tokens: SpecialTokens) -> None:
        self._texts = frozenset(tokens.texts.values())
        self._ends: dict[int, int] = {}

    def note(self, start: int, end: int) -> None:
        """A special token stands from `start` to `end`."""
        self._ends[start] = end

    def forget_before(self, offset: int) -> None:
        """What stands before `offset` will not be asked for again."""
        self._ends = {start: end for start, end in self._ends.items() if start >= offset}

    def __len__(self) -> int:
        return len(self._ends)

    def are_typed(self, literal: str, offset: int) -> bool:
        """Whether `literal`, read at `offset`, is spelled out though there is a token for it or a part of it."""
        return any(self._ends.get(offset + start) != offset + end for start, end in _tokens_in(literal, self._texts))


@lru_cache(maxsize=4096)
def _tokens_in(literal: str, texts: frozenset[str]) -> tuple[tuple[int, int], ...]:
    """Where tokens stand in a marker: the longest first, none over another."""
    places: list[tuple[int, int]] = []
    at = 0
    while at < len(literal):
        longest = max((text for text in texts if text and literal.startswith(text, at)), key=len, default="")
        if longest:
            places.append((at, at + len(longest)))
        at += len(longest) or 1
    return tuple(places)
