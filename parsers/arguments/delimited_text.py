"""Values with bare keys, bare words and strings between delimiters, as Gemma writes them, made JSON by schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.arguments.schema_place import SchemaPlace
from streamsieve.parsers.arguments.schema_types import convert, json_value, write_json
from streamsieve.parsers.scanner import Malformed

KEY = re.compile(r"[^\s:,{}\[\]()<>\"']*")
_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"[^,}\]]*")
_KINDS = {"{": "object", "[": "array"}


@dataclass(frozen=True)
class DelimitedText:
    """How such values are written.

    `delimiter` stands on both sides of a string, in which nothing else means anything.
    `undeclared`: what a value is of which the schema says nothing: always a string, or JSON where its
    text is JSON.
    """

    delimiter: str
    undeclared: Literal["string", "json"]

    def scalar(self, text: str, place: SchemaPlace) -> str:
        """The JSON text of a string or a bare word."""
        if place.types:
            return convert(text, frozenset(place.types))
        return (json_value(text) if self.undeclared == "json" else None) or f'"{quote(text)}"'

    def container(self, text: str, place: SchemaPlace) -> str:
        """The JSON text of a value in braces or brackets; of one that is not written so, what its type makes of it."""
        try:
            json, end = self._container(text, 0, place)
            if end == len(text):
                return json
        except (Malformed, RecursionError):
            pass
        return self.scalar(text, place)

    def _value(self, text: str, at: int, place: SchemaPlace) -> tuple[str, int]:
        """The JSON text of the value at `at`, and where it ends."""
        at = _skip(_SPACE, text, at)
        if text[at : at + 1] in ("{", "["):
            return self._container(text, at, place)
        if text.startswith(self.delimiter, at):
            inside, end = self._string(text, at)
        else:
            end = _skip(_BARE, text, at)
            inside = text[at:end].strip()
        return self.scalar(inside, place), end

    def _string(self, text: str, at: int) -> tuple[str, int]:
        start = at + len(self.delimiter)
        end = text.find(self.delimiter, start)
        if end < 0:
            raise Malformed
        return text[start:end], end + len(self.delimiter)

    def _container(self, text: str, at: int, place: SchemaPlace) -> tuple[str, int]:
        kind = _KINDS[text[at]]
        if place.types and kind not in place.types:
            _, end = self._container(text, at, SchemaPlace(None, {}))
            return self.scalar(text[at:end], place), end
        closer = "}" if kind == "object" else "]"
        parts: list[str] = []
        start, at = at, _skip(_SPACE, text, at + 1)
        while text[at : at + 1] != closer or parts:
            if kind == "object":
                key, at = self._key(text, at)
                json, at = self._value(text, at, place.member(key))
                parts.append(f'"{quote(key)}": {json}')
            else:
                json, at = self._value(text, at, place.item())
                parts.append(json)
            at = _skip(_SPACE, text, at)
            if text[at : at + 1] == closer:
                break
            if text[at : at + 1] != ",":
                raise Malformed
            at = _skip(_SPACE, text, at + 1)
        return f"{text[start]}{', '.join(parts)}{closer}", at + 1

    def _key(self, text: str, at: int) -> tuple[str, int]:
        if text.startswith(self.delimiter, at):
            key, end = self._string(text, at)
        else:
            end = _skip(KEY, text, at)
            key = text[at:end]
        end = _skip(_SPACE, text, end)
        if not key or text[end : end + 1] != ":":
            raise Malformed
        return key, end + 1

    def write(self, value: object) -> str:
        """`value`, made of what JSON has, as the format writes it."""
        match value:
            case str():
                return f"{self.delimiter}{value}{self.delimiter}"
            case list():
                return f"[{','.join(map(self.write, value))}]"
            case dict():
                return f"{{{','.join(f'{self.write_key(key)}:{self.write(item)}' for key, item in value.items())}}}"
            case _:
                return write_json(value)

    def write_key(self, key: str) -> str:
        """A key: bare where it can be."""
        return key if key and KEY.fullmatch(key) else f"{self.delimiter}{key}{self.delimiter}"


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where the run of `pattern`, which also matches nothing, ends that begins at `at`."""
    found = pattern.match(text, at)
    return found.end() if found else at
