"""What stands where vLLM hands a parser its tokenizer and token ids: whoever looks into it is told no."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn, overload


class AskedForTokens(RuntimeError):
    """A parser wanted more than text."""


class NoTokenizer:
    """True, as a tokenizer is, and nothing else. `asked_for`: what was wanted of it so far."""

    def __init__(self) -> None:
        self.asked_for: list[str] = []

    def refuse(self, what: str) -> NoReturn:
        """Note it, since the parser may catch the error, and raise AskedForTokens."""
        self.asked_for.append(what)
        raise AskedForTokens(f"it asks for {what}, and only a parser that looks at text alone can be used here")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse(f"the tokenizer's {name}")


class NoTokenIds(Sequence[int]):
    """Ids that are not known; parsers may pass them on, but not look at them."""

    def __init__(self, tokenizer: NoTokenizer) -> None:
        self._tokenizer = tokenizer

    def __len__(self) -> int:
        self._tokenizer.refuse("token ids")

    def __contains__(self, value: object) -> bool:
        self._tokenizer.refuse("token ids")

    def __iter__(self) -> Iterator[int]:
        self._tokenizer.refuse("token ids")

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        self._tokenizer.refuse("token ids")
