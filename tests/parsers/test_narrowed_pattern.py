"""Patterns that cannot match what would end a value."""

from __future__ import annotations

import re

import pytest

from streamsieve.parsers.arguments.narrowed_pattern import narrowed, not_starting_with, other_words
from streamsieve.parsers.errors import Inexpressible


@pytest.mark.parametrize(
    ("pattern", "still", "no_more"),
    [
        ("^.+$", ["a b", ">"], ["<", "a<b"]),
        (r"\S+@[^@]+", ["a@b", "a@ "], ["<@b", "a@<"]),
        ("[ -~]+", [";", "=", " ", "~", "-"], ["<"]),
        (r"[\x20-\x7e]{2}", [";=", "  "], ["<a", "a<"]),
        ("[;-<]", [";"], ["<"]),
        (r"[^\]<]", ["a"], ["]", "<"]),
        (r"\d{2}-\w", ["12-a"], []),
        (r"(?:a|\.)", ["a", "."], ["b"]),
    ],
)
def test_a_pattern_loses_what_is_barred(pattern: str, still: list[str], no_more: list[str]) -> None:
    found = re.compile(narrowed(pattern, "<"))
    assert all(map(found.fullmatch, still))
    assert not any(map(found.fullmatch, no_more))


@pytest.mark.parametrize("pattern", ["<b>", r"\<", "[<]", r"[\S]", r"\x3c", r"\u003c", r"[\x3c]", "[<-<]", "a|<"])
def test_a_pattern_that_asks_for_what_is_barred_is_refused(pattern: str) -> None:
    with pytest.raises(Inexpressible, match="which may end the value"):
        narrowed(pattern, "<")


def test_texts_that_begin_with_none_of_some_words() -> None:
    shown, short = map(re.compile, not_starting_with(["[", "<|a|>"]))
    for text in ("x", " x", "<b", "<|b", " \n<|a>", "-"):
        assert shown.match(text), text
    for text in ("", " ", "<", "<|a", "\n<|"):
        assert short.fullmatch(text), text
    for text in ("[", " [x", "<|a|>", "<|a|>x"):
        assert not shown.match(text), text
        assert not short.fullmatch(text), text


def test_identifiers_that_are_none_of_some_words() -> None:
    found = re.compile(other_words(["city", "cities", "a.b"]))
    assert all(map(found.fullmatch, ["cit", "citya", "cities_", "c", "x1", "_", "a"]))
    assert not any(map(found.fullmatch, ["city", "cities", "1x", "a.b", ""]))
    assert re.fullmatch(other_words([]), "anything")
