"""Openers and closers given as literals or as regular expressions, looked for in text that still comes."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from streamsieve.parsers.scanner import EndOfText, Plain, Reader, Reading, Search, Write

_QUANTIFIER = re.compile(r"([*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})[?+]?")
_ESCAPE = re.compile(r"\\(?:x..|u....|U........|N\{[^}]*\}|.)", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_GROUP = re.compile(r"\((?:\?(?P<kind>P<\w+>|P=|:|=|!|<=|<!|>|#|[aiLmsux-]+:?))?")
_FIRST = re.compile(r"(\\[^\w\s]|[\w<])(?![*?{])(?!(?:[^\\|]|\\.)*\|)", re.DOTALL)
_NO_WIDTH = frozenset({r"\b", r"\B", r"\A", r"\Z"})


_WINDOW = 256
"""Characters that are searched at first; a search that finds nothing goes on with twice as many, so that what
a search costs depends on how far the sign is, and not on how much text there is."""

_MORE = "\U0010ffff"
"""A character that no text has: it stands for whatever may come next."""


@dataclass(frozen=True)
class Sign:
    """One opener or closer; `pattern` is a regular expression, in which a dot matches a line break too."""

    pattern: str

    @property
    def whole(self) -> re.Pattern[str]:
        """What it looks like."""
        return _compiled(self.pattern)

    @property
    def growing(self) -> re.Pattern[str]:
        """What of it the text that `_MORE` is put behind may end in, if the next character is part of it too."""
        return _compiled(rf"(?!{_MORE}|\Z)(?:{beginnings(self.pattern)})\Z")


def literal(text: str) -> Sign:
    """The sign that is exactly `text`."""
    return Sign(re.escape(text))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


class Found(NamedTuple):
    """A sign in a text."""

    sign: Sign
    match: re.Match[str]

    @property
    def text(self) -> str:
        """What it is there."""
        return self.match.group()

    @property
    def groups(self) -> dict[str, object]:
        """The named groups that took part."""
        return {name: text for name, text in self.match.groupdict().items() if text is not None}


@dataclass(frozen=True)
class Signs:
    """A set of signs. The one that starts first counts, of those the longest, of those the first of `signs`."""

    signs: tuple[Sign, ...]

    @cached_property
    def first(self) -> Search | None:
        """What finds a character that a sign may begin with; None where that takes more than to look at it."""
        firsts = [_FIRST.match(sign.pattern) for sign in self.signs]
        if not all(firsts):
            return None
        return re.compile("|".join(found[1] for found in firsts if found) or "(?!)").search

    def find(self, reader: Reader, write: Write) -> Reading[Found | None]:
        """Give text to `write` up to the next sign, which is taken and returned; None at the end of the text."""
        size = _WINDOW
        while True:
            text, position = reader.text, reader.position
            window = text[position : position + size]
            is_all = position + size >= len(text)
            found = self._next(window, 0, ended=reader.ended and is_all)
            start = found if isinstance(found, int) else found.match.start()
            if start:
                write(window[:start])
                reader.position += start
            if not isinstance(found, int):
                reader.position += len(found.text)
                return found
            if not is_all:
                size *= 2
                continue
            if reader.is_over:
                return None
            if start == len(window) and self.first:
                reader.wait_in_plain_text(Plain(self.first, write))
            with suppress(EndOfText):
                yield

    def takes(self, reader: Reader) -> Reading[bool]:
        """Take a sign if one comes next; whether one did."""
        size = _WINDOW
        while True:
            window = reader.text[reader.position : reader.position + size]
            is_all = reader.position + size >= len(reader.text)
            found = self._next(window, 0, ended=reader.ended and is_all)
            if (found if isinstance(found, int) else found.match.start()) > 0 or reader.is_over:
                return False
            if not isinstance(found, int):
                reader.position += len(found.text)
                return True
            if not is_all:
                size *= 2
                continue
            with suppress(EndOfText):
                yield

    def end_within(self, reader: Reader) -> bool:
        """Whether the reply is over, and what is unread of it is the beginning of a sign."""
        rest = reader.text[reader.position :] + _MORE
        return reader.ended and any(sign.growing.match(rest) for sign in self.signs)

    def first_in(self, text: str, position: int) -> Found | None:
        """The first sign in a text to which nothing more comes."""
        found = self._next(text, position, ended=True)
        return None if isinstance(found, int) else found

    def _next(self, text: str, position: int, *, ended: bool) -> Found | int:
        """The next sign, or from where on more text has to tell whether there is one."""
        starts = [found.start() for sign in self.signs if (found := sign.whole.search(text, position))]
        more = "" if ended else text + _MORE
        growing = [found.start() for sign in self.signs if more and (found := sign.growing.search(more, position))]
        start = min((*starts, *growing), default=len(text))
        if start in growing or start not in starts:
            return start
        matches = [Found(sign, found) for sign in self.signs if (found := sign.whole.match(text, start))]
        return max(matches, key=lambda found: found.match.end())


@lru_cache(maxsize=1024)
def beginnings(pattern: str) -> str:
    """A pattern for the beginnings of what `pattern` matches: each of its atoms may also be `_MORE`, or behind it.

    It may match more, where `pattern` looks behind or back at a group; then text is held longer, no more.
    """
    out: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "|":
            out.append("|")
            at += 1
            continue
        atom, at = _atom(pattern, at)
        quantifier = _QUANTIFIER.match(pattern, at)
        at = quantifier.end() if quantifier else at
        if atom:
            lazy = "?" if quantifier and quantifier.group() == f"{quantifier[1]}?" else ""
            out.append(rf"(?:(?:{atom}|{_MORE}){quantifier[1] + lazy if quantifier else ''}|\Z)")
    return "".join(out)


def _atom(pattern: str, at: int) -> tuple[str, int]:
    """The atom at `at` as it may begin, empty where it has no width, and where it ends."""
    if found := _ESCAPE.match(pattern, at):
        atom = found.group()
        return ("" if atom in _NO_WIDTH else r".*" if atom[1] in "123456789" else atom), found.end()
    if found := _CLASS.match(pattern, at):
        return found.group(), found.end()
    if pattern[at] in "^$":
        return "", at + 1
    if found := _GROUP.match(pattern, at):
        end = _group_end(pattern, at)
        kind = found["kind"] or ":"
        if kind in ("P=", "<=", "<!", "#") or (kind[0] in "aiLmsux-" and kind[-1] != ":"):
            return (r".*" if kind == "P=" else ""), end
        flags = kind if kind[0] in "aiLmsux-" else ":"
        return f"(?{flags}{beginnings(pattern[found.end() : end - 1])})", end
    return pattern[at], at + 1


def _group_end(pattern: str, at: int) -> int:
    """Where the group ends that starts at `at`."""
    depth = 0
    while at < len(pattern):
        if found := _ESCAPE.match(pattern, at) or _CLASS.match(pattern, at):
            at = found.end()
            continue
        depth += {"(": 1, ")": -1}.get(pattern[at], 0)
        at += 1
        if depth == 0:
            break
    return at
