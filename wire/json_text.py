"""JSON bytes ↔ values: orjson, and the standard library where orjson would refuse or lose something.

Values are dicts, lists, strings, numbers, booleans and None. A number or word that Python cannot carry
through unchanged (`1e400`, an integer of 25 digits, `NaN`) is kept as the text it was written in, and
comes out as that text.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import orjson

JsonObject = dict[str, object]


class NotJsonError(ValueError):
    """The bytes are not JSON that we can read; what to do with them is the caller's to say."""


STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
"""A pattern of what stands for a string in JSON bytes; what it matches still has to be read to know that it is one."""

_loads, _dumps = orjson.loads, orjson.dumps
_INTEGERS = range(-(2**63), 2**64)
"""What orjson reads as an integer; it makes a rounded float of any other."""
_SHAPE = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x2D if byte == 0x2D else 0x20 for byte in range(256))
_LONG, _LONG_NEGATIVE = b"0" * 20, b"-" + b"0" * 19
"""How a number that may not be one of these looks when every digit is a 0."""


def decode(data: bytes) -> object:
    """The value of `data`; raises `NotJsonError`."""
    shape = data.translate(_SHAPE)
    if _LONG in shape or _LONG_NEGATIVE in shape:
        return _decode_exactly(data)
    try:
        return _loads(data)
    except orjson.JSONDecodeError:
        return _decode_exactly(data)


def decode_object(data: bytes) -> JsonObject:
    """The object in `data`; an empty one where `data` is none, or is not JSON that we can read."""
    try:
        value = decode(data)
    except NotJsonError:
        return {}
    return value if isinstance(value, dict) else {}


def encode(value: object) -> bytes:
    """`value` as compact JSON, in UTF-8; keys stay in their order."""
    try:
        return _dumps(value)
    except orjson.JSONEncodeError:
        return _encode_exactly(value)


def _verbatim(text: str) -> orjson.Fragment:
    return orjson.Fragment(text.encode())


def _integer(text: str) -> int | orjson.Fragment:
    if len(text) > len(_LONG):
        return _verbatim(text)
    value = int(text)
    return value if value in _INTEGERS else _verbatim(text)


def _number(text: str) -> float | orjson.Fragment:
    value = float(text)
    return value if repr(value) == text else _verbatim(text)


_decode_text: Callable[[str], object] = json.JSONDecoder(
    parse_int=_integer, parse_float=_number, parse_constant=_verbatim
).decode


def _decode_exactly(data: bytes) -> object:
    try:
        return _decode_text(data.decode())
    except (ValueError, RecursionError) as error:
        raise NotJsonError(str(error)) from None


def _encode_exactly(value: object) -> bytes:
    """What orjson refuses: half a surrogate pair, which is written `\\ud83d`, and deep nesting (not recursive)."""
    out = bytearray()
    left = [value]  # to be written, the next last; bytes are text already
    while left:
        match left.pop():
            case bytes(text):
                out += text
            case str(text):
                out += json.dumps(text).encode()
            case dict(members):
                left.append(b"}")
                for place, (name, member) in reversed([*enumerate(members.items())]):
                    left += [member, b":", name, b"," if place else b""]
                left.append(b"{")
            case list(items):
                left.append(b"]")
                for place, item in reversed([*enumerate(items)]):
                    left += [item, b"," if place else b""]
                left.append(b"[")
            case other:
                out += _dumps(other)
    return bytes(out)
