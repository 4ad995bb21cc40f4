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
    """Takes text, at least a character, that stands in a JSON string as it is, where that may go out at once."""

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
    """A string whose outer white space is markup: what may be the end of it waits."""

    def __init__(self, write: Write) -> None:
        super().__init__(write)
        self.json = self._take_json
        self._held: list[str] = []  # as JSON
        self._started = self._flows = False

    def text(self, text: str) -> None:
        """The next text of it."""
        visible = text.rstrip()
        if visible:
            self._write("".join(self._held) + quote(visible) if self._started else quote(visible.lstrip()))
            self._started = True
            self._held.clear()
        self._flows = len(visible) == len(text)
        if not self._flows:
            self._held.append(quote(text[len(visible) :]))

    def _take_json(self, text: str) -> None:
        """The next text, which stands in a JSON string as it is."""
        if not self._started:
            self.text(text)
        elif not text[-1].isspace():
            self._write(text if self._flows else "".join(self._held) + text)
            self._flows = True
            self._held.clear()
        else:
            visible = text.rstrip()
            if visible:
                self._write("".join(self._held) + visible)
                self._held.clear()
            self._held.append(text[len(visible) :])
            self._flows = False

    def cut(self) -> None:
        """The reply ended within it: the white space was its own."""
        if self._started and self._held:
            self._write("".join(self._held))


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
