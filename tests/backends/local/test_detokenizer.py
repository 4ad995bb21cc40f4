"""Text as tokens come, of the two kinds of tokenizers."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, decoders, models
from tokenizers import Tokenizer as FastTokenizer
from transformers import PreTrainedTokenizerFast

from streamsieve.backends.local.server.detokenizer import Detokenizer
from streamsieve.backends.local.server.tokenizer import Tokenizer

PIECES = ("<unk>", "▁Hello", "▁world", "ly", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>")


@pytest.fixture(scope="module")
def sentencepiece() -> Tokenizer:
    """As Llama's: words begin with a mark for the space before them, which a text's first word loses."""
    fast = FastTokenizer(models.Unigram([(piece, -1.0) for piece in PIECES], 0, True))
    marks, space = decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)
    fast.decoder = decoders.Sequence([marks, decoders.ByteFallback(), decoders.Fuse(), space])
    fast.add_special_tokens([AddedToken("[/INST]", special=True)])
    return Tokenizer(PreTrainedTokenizerFast(tokenizer_object=fast))


@pytest.mark.parametrize(
    ("prompt", "tokens", "texts"),
    [
        ([], ["▁Hello", "▁world", "ly"], ["Hello", " world", "ly"]),
        (["▁Hello"], ["▁world", "ly"], [" world", "ly"]),
        (["[/INST]"], ["▁Hello"], [" Hello"]),
        ([], ["▁Hello", "[/INST]", "▁world"], ["Hello", "[/INST]", " world"]),
        ([], ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "ly"], [None, None, None, "😀", "ly"]),
        (["▁Hello", "<0xF0>"], ["▁world"], ["world"]),
    ],
)
def test_words(sentencepiece: Tokenizer, prompt: list[str], tokens: list[str], texts: list[str | None]) -> None:
    detokenizer = Detokenizer(sentencepiece, [sentencepiece.fast.token_to_id(token) for token in prompt])
    assert [detokenizer.feed(sentencepiece.fast.token_to_id(token)) for token in tokens] == texts


@pytest.mark.parametrize("skip", [False, True])
def test_bytes(byte_tokenizer: PreTrainedTokenizerFast, skip: bool) -> None:
    tokenizer = Tokenizer(byte_tokenizer)
    detokenizer = Detokenizer(tokenizer, skip_special=skip)
    fed = [detokenizer.feed(id) for id in tokenizer.encode("é</think>\xff!")]
    assert fed == [None, "é", None if skip else "</think>", None, "ÿ", "!"]


def test_a_token_that_is_none_has_no_text(byte_tokenizer: PreTrainedTokenizerFast) -> None:
    detokenizer = Detokenizer(Tokenizer(byte_tokenizer))
    assert [detokenizer.feed(id) for id in (10**6, 0)] == [None, "!"]


@pytest.mark.parametrize("skip", [False, True])
def test_bytes_that_are_no_characters(byte_tokenizer: PreTrainedTokenizerFast, skip: bool) -> None:
    """They do not wait for ever, nor do they take the character with them that follows."""
    tokenizer = Tokenizer(byte_tokenizer)
    stray, *smile = tokenizer.encode("\N{LATIN SMALL LETTER A WITH GRAVE}")[:1] + tokenizer.encode("😀")
    detokenizer = Detokenizer(tokenizer, skip_special=skip)
    fed = [detokenizer.feed(id) or "" for id in [stray] * 5000 + smile]
    assert "".join(fed) == "\N{REPLACEMENT CHARACTER}" * 5000 + "😀"
    silent = max(map(len, "".join("." if text else " " for text in fed).split(".")))
    assert silent < 16
