"""Writes the JSON object of arguments that did not come as JSON, as far as it is certain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.scanner import Write

Trim = Literal["none", "space"]
"""What white space round a raw value is markup: none or all of it."""


class ObjectWriter:
    """`{"key": value, "key": value}`, key by key. A key goes out with the beginning of its value."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._before = '{"'

    def value(self, key: str, json: str) -> None:
        """A member whose value, as JSON text, is there."""
        self._write(f'{self._before}{quote(key)}": {json}')
        self._before = ', "'

    def open_string(self, key: str, trim: Trim) -> StringValue:
        """A member whose value is a string that is still to come."""
        self._write(f'{self._before}{quote(key)}": "')
        self._before = ', "'
        return _STRINGS[trim](self._write)

    def close(self) -> None:
        """No more members."""
        self._write("{}" if self._before == '{"' else "}")


class RawValue(Protocol):
    """Takes the raw text of one value as it comes."""

    json: Write | None
    """Takes text that is already as it stands in a JSON string, where that may go out at once: any, or where
    white space is trimmed, text that does not end in some."""

    def text(self, text: str) -> None:
        """The next text of it."""

    def close(self) -> None:
        """Its end has been read."""

    def cut(self) -> None:
        """The reply ended within it."""


class StringValue:
    """A string that goes out as it comes."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self.json: Write | None = write

    def text(self, text: str) -> None:
        """The next text of it."""
        self._write(quote(text))

    def close(self) -> None:
        """Its end has been read."""
        self._write('"')

    def cut(self) -> None:
        """The reply ended within it: all that came is out."""


class StrippedString(StringValue):
    """A string whose outer white space is markup."""

    def __init__(self, write: Write) -> None:
        super().__init__(write)
        self.json = self._take_visible
        self._held: list[str] = []
        self._started = False

    def text(self, text: str) -> None:
        """The next text of it."""
        visible = text.rstrip()
        if visible:
            self._write(quote("".join(self._held) + visible if self._started else visible.lstrip()))
            self._started = True
            self._held = []
        if len(visible) < len(text):
            self._held.append(text[len(visible) :])

    def _take_visible(self, json: str) -> None:
        """The next text, which does not end in white space."""
        self._write(quote("".join(self._held)) + json if self._started else json.lstrip())
        self._started = True
        self._held = []

    def cut(self) -> None:
        """The reply ended within it: the white space was its own."""
        if self._started and self._held:
            self._write(quote("".join(self._held)))


_STRINGS: dict[Trim, type[StringValue]] = {"none": StringValue, "space": StrippedString}


class HeldValue:
    """A value that is converted by its types when all of it is there."""

    def __init__(
        self,
        arguments: ObjectWriter,
        key: str,
        types: frozenset[str],
        trim: Trim,
        convert: Callable[[str, frozenset[str]], str],
    ) -> None:
        self._arguments = arguments
        self._key = key
        self._types = types
        self._trim = trim
        self._convert = convert
        self._pieces: list[str] = []
        self.json: Write | None = None

    def text(self, text: str) -> None:
        """The next text of it."""
        self._pieces.append(text)

    def close(self) -> None:
        """Its end has been read."""
        raw = "".join(self._pieces)
        self._arguments.value(self._key, self._convert(raw.strip() if self._trim == "space" else raw, self._types))

    def cut(self) -> None:
        """The reply ended within it: an unfinished value adds nothing."""
