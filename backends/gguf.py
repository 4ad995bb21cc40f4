"""What a GGUF file says of its model in its header; the tensors behind it are never read.

The layout is that of the GGUF specification (ggml/docs/gguf.md), versions 2 and 3, little endian. The
`gguf` package would bring numpy, requests and more for these few fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from streamsieve.parsers.errors import ConfigurationError

MOST_FIELDS = 65_536
LONGEST_STRING = 16 * 1024 * 1024
"""Bytes."""
LONGEST_LIST = 4 * 1024 * 1024
"""Elements; the largest vocabularies have some hundred thousand tokens."""

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The specification's value types, as `struct` writes them."""


def read_fields(path: Path, wanted: Callable[[str], bool]) -> Mapping[str, object]:
    """The fields of the header whose keys are `wanted`: strings, numbers and lists of these.

    Raises ConfigurationError where the file is no GGUF file, or one with sizes beyond all reason.
    """
    try:
        with path.open("rb") as file:
            return _Header(file).fields(wanted)
    except OSError as error:
        raise ConfigurationError(f"model: {path}: {error.strerror}") from error
    except (struct.error, _Malformed, UnicodeDecodeError) as error:
        raise ConfigurationError(f"model: {path} is no GGUF file that can be read: {error}") from error


class _Malformed(Exception):
    """The header is not what the specification has."""


@dataclass(slots=True)
class _Header:
    """The header, read from its start."""

    file: BinaryIO

    def fields(self, wanted: Callable[[str], bool]) -> dict[str, object]:
        if self.file.read(4) != b"GGUF":
            raise _Malformed("it does not begin with GGUF")
        version = self._number("I")
        if version not in (2, 3):
            raise _Malformed(f"version {version}, not 2 or 3")
        self._number("Q")  # how many tensors
        count = self._limited(self._number("Q"), MOST_FIELDS, "fields")
        found: dict[str, object] = {}
        for _ in range(count):
            key = self._string().decode()
            kind = self._number("I")
            if wanted(key):
                found[key] = self._value(kind)
            else:
                self._skip(kind)
        return found

    def _value(self, kind: int) -> object:
        if kind == _STRING:
            return self._string().decode()
        if kind != _ARRAY:
            return self._number(self._scalar(kind))
        element, count = self._array()
        if element == _STRING:
            # One token of a vocabulary may be half a character.
            return [self._string().decode(errors="replace") for _ in range(count)]
        form = struct.Struct(f"<{count}{self._scalar(element)}")
        return list(form.unpack(self._bytes(form.size)))

    def _skip(self, kind: int) -> None:
        if kind == _STRING:
            self._string()
        elif kind != _ARRAY:
            self._number(self._scalar(kind))
        else:
            element, count = self._array()
            if element == _STRING:
                for _ in range(count):
                    self._string()
            else:
                self._bytes(count * struct.calcsize("<" + self._scalar(element)))

    def _array(self) -> tuple[int, int]:
        element = self._number("I")
        return element, self._limited(self._number("Q"), LONGEST_LIST, "elements of a list")

    def _scalar(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise _Malformed(f"value type {kind}")
        return _SCALARS[kind]

    def _string(self) -> bytes:
        return self._bytes(self._limited(self._number("Q"), LONGEST_STRING, "bytes of a string"))

    def _number(self, form: str) -> int:
        number: int = struct.unpack("<" + form, self._bytes(struct.calcsize("<" + form)))[0]
        return number

    def _bytes(self, count: int) -> bytes:
        data = self.file.read(count)
        if len(data) != count:
            raise _Malformed("it ends within its header")
        return data

    def _limited(self, count: int, limit: int, what: str) -> int:
        if count > limit:
            raise _Malformed(f"{count} {what}, more than {limit}")
        return count


_CONTROL, _USER_DEFINED = 3, 4
"""Token types of the specification: what stands for a marker is one of these."""


def special_tokens(tokens: Collection[object], types: Collection[object]) -> frozenset[str]:
    """Those of the vocabulary's tokens that are no pieces of text."""
    return frozenset(
        token
        for token, kind in zip(tokens, types, strict=False)
        if kind in (_CONTROL, _USER_DEFINED) and isinstance(token, str)
    )
