"""What each token of a model writes, as constraints need to know it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from xgrammar import TokenizerInfo, VocabType

from streamsieve.parsers.tokens import SpecialTokens

_NO_TEXT = b"\xff"
"""What xgrammar is told that a special token writes. No text holds this byte, so no string, pattern or character
class of a grammar takes the token, and only a grammar that names the token does. (Where xgrammar looks for a closing
literal byte by byte it does take it; `Vocabulary.witness` tells such places.)"""

_CONTROL = re.compile(rb"[\x00-\x1f]")
_BLANKS = (b"\t", b"\n")
_NO_SECOND = {0xE0: range(0x80, 0xA0), 0xED: range(0xA0, 0xC0), 0xF0: range(0x80, 0x90), 0xF4: range(0x90, 0xC0)}
"""First bytes of characters, and the second ones that do not make a character with them though xgrammar may take them:
half surrogate pairs, and what could be written shorter."""
_MOST_LITERALS = 256
"""Of which it is known for good which tokens hold them."""
_NO_UTF8 = re.compile(rb"\xe0[\x80-\x9f]|\xed[\xa0-\xbf]|\xf0[\x80-\x8f]|\xf4[\x90-\xbf]")


class Vocabulary:
    """The tokens of one model.

    `size`: rows of the model's output layer, which may be more than the tokenizer has. `stops`: the tokens that end a
    reply. `special`: its added tokens by their text, each of which stands for a marker as a whole.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, size: int, stops: Collection[int]) -> None:
        self.size = size
        self.stops = frozenset(stops)
        told = TokenizerInfo.from_huggingface(tokenizer, vocab_size=size, stop_token_ids=sorted(stops))
        self.special = {
            token.content: number
            for number, token in tokenizer.added_tokens_decoder.items()
            if number < size and (token.special or token.content.strip(" ▁\n\r\t"))
        }
        texts: list[bytes] = list(told.decoded_vocab)
        writes = [
            _NO_TEXT if number in self._numbers else b"" if _NO_UTF8.search(text) else text
            for number, text in enumerate(texts)
        ]
        self.info = TokenizerInfo(
            writes,
            VocabType.RAW,
            vocab_size=size,
            stop_token_ids=sorted(stops),
            add_prefix_space=told.add_prefix_space,
        )
        for text, number in self.special.items():
            texts[number] = text.encode()
        self.texts: Sequence[bytes] = texts
        """What each token writes, in UTF-8 bytes of which it may hold a part of a character."""
        self.stop_row = self.row(self.stops)
        """Only what ends the reply."""
        self.plain_row = self.row_without(self._numbers - self.stops)
        """All but the special tokens; those that end the reply are allowed."""
        self.json_row = self.row_without([number for number, text in enumerate(texts) if _CONTROL.search(text)])
        """All but the tokens with control characters, which no string of JSON has."""
        self.second_byte_rows: Mapping[int, Tensor] = {
            first: self.row_without([number for code in codes for number, _ in self.beginning_with(bytes([code]))])
            for first, codes in _NO_SECOND.items()
        }
        """By the first byte of a character of which no more is written: the tokens that may go on with it."""

    @cached_property
    def _numbers(self) -> frozenset[int]:
        return frozenset(self.special.values())

    @cached_property
    def longest(self) -> int:
        """Bytes that a token writes at most."""
        return max(map(len, self.texts))

    @cached_property
    def markers(self) -> SpecialTokens:
        """The special tokens, as the parsers know them."""
        return SpecialTokens({number: text for text, number in self.special.items()})

    def split(self, text: str) -> Iterator[str | int]:
        """`text` as the model writes it: special tokens by their numbers, and the text between them."""
        for index, piece in enumerate(self._special_texts.split(text)):
            if piece:
                yield self.special[piece] if index % 2 else piece

    @cached_property
    def _special_texts(self) -> re.Pattern[str]:
        longest_first = sorted(self.special, key=len, reverse=True)
        return re.compile("(" + ("|".join(map(re.escape, longest_first)) or r"(?!)") + ")")

    # -- rows of a bitmask --

    def row(self, allowed: Collection[int]) -> Tensor:
        """A row of a bitmask, one bit a token as xgrammar has it, in which these tokens are allowed and no others."""
        tokens = np.fromiter(allowed, dtype=np.int64, count=len(allowed))
        words = np.zeros(-(-self.size // 32), dtype=np.uint32)
        np.bitwise_or.at(words, tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32))
        return torch.from_numpy(words.view(np.int32))

    def row_without(self, barred: Collection[int]) -> Tensor:
        """A row in which all tokens but these are allowed."""
        return ~self.row(barred)

    @cached_property
    def _blanks(self) -> tuple[int, int] | None:
        """The tokens of a tab and a line break, where there are such."""
        found = [next((number for number, text in enumerate(self.texts) if text == blank), None) for blank in _BLANKS]
        return None if None in found else (found[0] or 0, found[1] or 0)

    def is_in_counted_string(self, row: Tensor) -> bool:
        """Whether a row of a JSON grammar allows control characters within a string: tabs, where no line may break."""
        if self._blanks is None:
            return False
        tab, line_break = self._blanks
        return is_allowed(row, tab) and not is_allowed(row, line_break)

    def witness(self, named: Collection[int]) -> int | None:
        """A special token that the grammar does not name, so that it is allowed only where any text is."""
        return next((number for number in sorted(self._numbers - self.stops) if number not in named), None)

    # -- tokens by what they write --

    @cached_property
    def _sorted(self) -> tuple[Sequence[bytes], Sequence[int]]:
        """The texts of the plain tokens in order, and whose they are."""
        pairs = sorted((text, number) for number, text in enumerate(self.texts)
                       if text and number not in self._numbers and number not in self.stops)  # fmt: skip
        return [text for text, _ in pairs], [number for _, number in pairs]

    def beginning_with(self, prefix: bytes) -> Iterator[tuple[int, bytes]]:
        """The plain tokens whose text begins with `prefix`, and that text."""
        texts, numbers = self._sorted
        for index in range(bisect_left(texts, prefix), len(texts)):
            if not texts[index].startswith(prefix):
                return
            yield numbers[index], texts[index]

    def leading_to(self, literal: bytes) -> Iterator[int]:
        """The plain tokens whose text is the beginning of `literal`, or all of it."""
        texts, numbers = self._sorted
        for size in range(1, len(literal) + 1):
            index = bisect_left(texts, literal[:size])
            while index < len(texts) and texts[index] == literal[:size]:
                yield numbers[index]
                index += 1

    def holding(self, literal: bytes) -> Sequence[tuple[int, bytes]]:
        """The plain tokens with all of `literal` in them behind other text."""
        found = self._holding.get(literal)
        if found is None:
            texts, numbers = self._sorted
            found = [(number, text) for text, number in zip(texts, numbers, strict=True) if text.find(literal) > 0]
            if len(self._holding) >= _MOST_LITERALS:  # requests may bring their own
                self._holding.clear()
            self._holding[literal] = found
        return found

    @cached_property
    def _holding(self) -> dict[bytes, Sequence[tuple[int, bytes]]]:
        return {}


def is_allowed(row: Tensor, token: int) -> bool:
    """Whether `row` allows `token`."""
    return bool(int(row[token >> 5]) >> (token & 31) & 1)
