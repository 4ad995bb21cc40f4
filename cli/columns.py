"""Two columns of text in a terminal, drawn again in the same place as they grow."""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TextIO

Style = str
PLAIN, BOLD, DIM, LABEL = "", "\x1b[1m", "\x1b[2m", "\x1b[36m"
RESET = "\x1b[0m"
BORDER = " │ "
WIDEST = 110
"""Terminal cells; lines longer than that are hard to follow."""


@dataclass(frozen=True, slots=True)
class Line:
    """Text without line breaks, in one style."""

    text: str
    style: Style = PLAIN


class Screen:
    """Draws on a terminal; where the output is none, only the last drawing of each picture is written, plain."""

    def __init__(self, output: TextIO) -> None:
        self.is_terminal = output.isatty()
        self._output = output
        self._styled = self.is_terminal and "NO_COLOR" not in os.environ
        size = shutil.get_terminal_size((WIDEST, 40))
        self._width = min(size.columns, WIDEST)
        self._height = size.lines
        self._drawn = 0

    def write(self, line: Line) -> None:
        """A line of its own, above whatever is drawn next."""
        self._output.write(self._painted(_padded(line.text, 0), line.style) + "\n")

    def draw(self, left: Sequence[Line], right: Sequence[Line]) -> None:
        """Put the two columns in the place of those drawn before. Nothing, where there is no terminal."""
        if self.is_terminal:
            lines = self._columns(left, right)[-(self._height - 1) :]
            self._output.write(self._back() + "".join(line + "\n" for line in lines))
            self._output.flush()
            self._drawn = len(lines)

    def settle(self, left: Sequence[Line], right: Sequence[Line]) -> None:
        """The last drawing, whole; the next one comes below."""
        self._output.write(self._back() + "".join(line + "\n" for line in self._columns(left, right)))
        self._output.flush()
        self._drawn = 0

    def _back(self) -> str:
        return f"\x1b[{self._drawn}A\x1b[J" if self._drawn else ""

    def _columns(self, left: Sequence[Line], right: Sequence[Line]) -> list[str]:
        width = (self._width - len(BORDER)) // 2
        pairs = zip_longest(_wrapped(left, width), _wrapped(right, width), fillvalue=Line(""))
        return [
            (self._painted(_padded(one.text, width), one.style) + BORDER + self._painted(two.text, two.style)).rstrip()
            for one, two in pairs
        ]

    def _painted(self, text: str, style: Style) -> str:
        return f"{style}{text}{RESET}" if style and self._styled else text


def lines_of(text: str, style: Style = PLAIN, indent: str = "") -> list[Line]:
    """One `Line` for each line of a text; control characters are shown, not sent."""
    return [Line(indent + "".join(map(_visible, line)), style) for line in text.split("\n")]


def _visible(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


def _wrapped(lines: Sequence[Line], width: int) -> Iterator[Line]:
    for line in lines:
        start = used = 0
        for position, character in enumerate(line.text):
            if used + _cells(character) > width:
                yield Line(line.text[start:position], line.style)
                start, used = position, 0
            used += _cells(character)
        yield Line(line.text[start:], line.style)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - sum(map(_cells, text)))


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
