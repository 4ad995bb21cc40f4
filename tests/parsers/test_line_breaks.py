r"""Line breaks written as `\n`: where they are line breaks, at every cut (the minicpm card)."""

from __future__ import annotations

import pytest

from streamsieve.parsers.line_breaks import LineBreaks

WRITTEN = [
    (r"a\nb", "a\nb"),
    (r"a\r\nb\r.", "a\nb\n."),
    (r"\nu", "\nu"),
    (r"c:\\new\n", "c:\\\\new\n"),
    (r"`a\nb`\n", "`a\\nb`\n"),
    ("```\nx\\n\n```\\n", "```\nx\\n\n```\n"),
    (r"```x\ny", r"```x\ny"),
    (r"$x\nu$\n", "$x\\nu$\n"),
    (r"$$a\n$$\n", "$$a\\n$$\n"),
    (r"\(a\n\)\n", "\\(a\\n\\)\n"),
    (r"\[a\n\]\n", "\\[a\\n\\]\n"),
    (r"$5.\nThen `x\ny`.", "$5.\nThen `x\\ny`."),
    (r"$5.\n\nNext $6\n", "$5.\n\nNext $6\n"),
    ("$5\n\n\\n$", "$5\n\n\n$"),
    (r"$a \\ b\n$", r"$a \\ b\n$"),
    (r"$a\n \\n$", r"$a\n \\n$"),
    ("x\\", "x\\"),
    ("`", "`"),
]


def rewritten(pieces: list[str]) -> str:
    breaks = LineBreaks()
    return "".join([*map(breaks.feed, pieces), breaks.flush()])


@pytest.mark.parametrize(("text", "meant"), WRITTEN)
def test_where_they_count(text: str, meant: str) -> None:
    assert rewritten([text]) == meant
    assert rewritten(list(text)) == meant
    for at in range(1, len(text)):
        assert rewritten([text[:at], text[at:]]) == meant


def test_plain_text_does_not_wait() -> None:
    breaks = LineBreaks()
    assert breaks.feed("a $") == "a "
    assert breaks.feed("5 b") == "$5 b"
    assert breaks.feed(r"\n") == ""  # in a formula or not: the next dollar or blank line tells
    assert breaks.feed("c $") == r"\nc $"


def test_flushed_text_is_over() -> None:
    breaks = LineBreaks()
    assert breaks.feed("a\\") == "a"
    assert breaks.flush() == "\\"
    assert breaks.feed(r"n\n") == "n\n"
    assert breaks.feed("`x") == "`x"
    assert breaks.flush() == ""
    assert breaks.feed(r"\n.") == "\n."
