"""The tokenizer of a model: text to token ids and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as FastTokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from streamsieve.backends.local.model.loading import model_files, refusing
from streamsieve.parsers.errors import ConfigurationError


class Tokenizer:
    """Wraps a tokenizer of transformers. From any thread.

    `huggingface`: it; `fast`: the `tokenizers` object that it is built on.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Raises ConfigurationError for one that is written in Python: it cannot decode token by token."""
        fast = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(fast, FastTokenizer):
            raise ConfigurationError(f"model: its tokenizer ({type(tokenizer).__name__}) has no tokenizer.json form")
        self.huggingface = tokenizer
        self.fast: FastTokenizer = fast

    @classmethod
    def load(cls, source: Path) -> Tokenizer:
        """The tokenizer in a folder or GGUF file; nothing is fetched. Raises ConfigurationError."""
        folder, gguf = model_files(source)
        with refusing(f"the tokenizer of {source}"):
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, **gguf)
        return cls(tokenizer)

    def __len__(self) -> int:
        return self.fast.get_vocab_size()

    @property
    def eos_token_id(self) -> int | None:
        """The token that its own configuration says ends a text."""
        found = self.huggingface.eos_token_id
        return found if isinstance(found, int) else None

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """The token ids of `text`. `special`: with what the tokenizer itself puts round a text, as a first token.

        Special tokens that are spelled out in `text` are read as such, as everywhere.
        """
        return self.fast.encode(text, add_special_tokens=special).ids

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """The text of `ids`; half characters are U+FFFD."""
        return self.fast.decode(list(ids), skip_special_tokens=skip_special)

    def token(self, id: int) -> str | None:
        """The token as the vocabulary spells it; None where there is none with this id."""
        return self.fast.id_to_token(id)
