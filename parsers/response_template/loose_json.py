"""JSON with strings between delimiters of its own and with bare keys: the dialects of response templates."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass

_SPACE = re.compile(r"\s*")
_BARE_KEY = re.compile(r"[\w.$-]+")
_SCALAR = re.compile(r"[\w.+-]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True)
class Dialect:
    """`delimiters`: opener and closer of strings in which nothing is escaped. JSON's own strings count too."""

    delimiters: tuple[tuple[str, str], ...] = ()
    bare_keys: bool = False


def loose_value(text: str, dialect: Dialect) -> object:
    """The one value that `text` is. Raises ValueError where it is none, RecursionError where it is nested too deep."""
    reading = _Reading(text, dialect)
    value = reading.value()
    if reading.at_next():
        raise ValueError("something follows the value")
    return value


def closed_members(text: str, dialect: Dialect) -> dict[str, object] | None:
    """The members of the object that `text`, which is cut off, begins with: those that are complete."""
    reading = _Reading(text, dialect)
    if reading.at_next() != "{":
        return None
    members: dict[str, object] = {}
    with suppress(ValueError, RecursionError):  # the rest is not there, or is no member
        reading.members(members)
    return members


class _Reading:
    """A text and how far it is read."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._at = 0

    def at_next(self) -> str:
        """The next character that is no white space; empty at the end."""
        self._at = self._end(_SPACE)
        return self._text[self._at : self._at + 1]

    def value(self) -> object:
        """Read one value."""
        following = self.at_next()
        if (string := self._string()) is not None:
            return string
        if following == "{":
            members: dict[str, object] = {}
            self.members(members)
            return members
        if following == "[":
            return self._elements()
        start, self._at = self._at, self._end(_SCALAR)
        if self._at == len(self._text):
            raise ValueError("the scalar may go on")
        return json.loads(self._text[start : self._at])

    def members(self, members: dict[str, object]) -> None:
        """Read an object into `members`, one by one."""
        self._at += 1
        if self.at_next() == "}":
            self._at += 1
            return
        while True:
            self.at_next()
            key = self._key()
            self._take(":")
            members[key] = self.value()
            if self._take(",", "}") == "}":
                return

    def _elements(self) -> list[object]:
        self._at += 1
        elements: list[object] = []
        if self.at_next() == "]":
            self._at += 1
            return elements
        while True:
            elements.append(self.value())
            if self._take(",", "]") == "]":
                return elements

    def _key(self) -> str:
        if (string := self._string()) is not None:
            return string
        start, self._at = self._at, self._end(_BARE_KEY)
        if start == self._at or not self._dialect.bare_keys:
            raise ValueError("no key")
        return self._text[start : self._at]

    def _string(self) -> str | None:
        """The string that comes, or None where none does."""
        for opener, closer in self._dialect.delimiters:
            if self._text.startswith(opener, self._at):
                start = self._at + len(opener)
                end = self._text.index(closer, start)
                self._at = end + len(closer)
                return self._text[start:end]
        if not self._text.startswith('"', self._at):
            return None
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise ValueError("the string does not end")
        self._at = found.end()
        return str(json.loads(found.group(), strict=False))

    def _take(self, *signs: str) -> str:
        following = self.at_next()
        if following not in signs or not following:
            raise ValueError(f"none of {signs}")
        self._at += 1
        return following

    def _end(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        return found.end() if found else self._at
