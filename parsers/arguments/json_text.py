"""JSON passed through as the model wrote it: checked character by character, never re-typed (RFC 8259)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Literal

from streamsieve.parsers.scanner import EndOfText, Malformed, Plain, Reader, Reading, Write

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING_TEXT = r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+'
_STRING = re.compile(_STRING_TEXT)
_NOT_ALL_STRING = re.compile(rf"(?!{_STRING_TEXT}\Z)").match
_HEX = frozenset("0123456789abcdefABCDEF")
_ESCAPES = frozenset('"\\/bfnrt')
_WORDS = {"t": "true", "f": "false", "n": "null"}


MAX_NESTING = 500
"""How deep arguments may nest; what is deeper breaks the call. Readers of JSON recurse, and many fail at some 1000."""


class _Expect(Enum):
    VALUE = auto()
    ITEM_OR_CLOSE = auto()
    KEY = auto()
    KEY_OR_CLOSE = auto()
    COLON = auto()
    COMMA_OR_CLOSE = auto()


def _number_steps() -> dict[str, dict[str, str]]:
    digits, nonzero = "0123456789", "123456789"
    whole = dict.fromkeys(digits, "whole")
    fraction = dict.fromkeys(digits, "fraction")
    power = dict.fromkeys(digits, "power")
    exponent = dict.fromkeys("eE", "exponent")
    first = dict.fromkeys(nonzero, "whole") | {"0": "zero"}
    return {
        "": first | {"-": "minus"},
        "minus": first,
        "zero": {".": "point"} | exponent,
        "whole": whole | {".": "point"} | exponent,
        "point": fraction,
        "fraction": fraction | exponent,
        "exponent": power | {"+": "sign", "-": "sign"},
        "sign": power,
        "power": power,
    }


_NUMBER = _number_steps()
_NUMBER_MAY_END = frozenset({"zero", "whole", "fraction", "power"})


Controls = Literal["refused", "escaped"]
"""What a raw control character in a string is: a failure, as JSON has it, or written as its escape."""


def copy_json(reader: Reader, write: Write, controls: Controls = "refused") -> Reading[None]:
    """Take one JSON value, which starts at the next character, and give its text to `write` as it is checked.

    Raises Malformed at the first character that JSON cannot have there, or that nests deeper than
    `MAX_NESTING`; what came before it has been written.
    """
    return reader.copy(write, _value(reader, controls))


def _value(reader: Reader, controls: Controls = "refused") -> Reading[None]:
    closers: list[str] = []
    expect = _Expect.VALUE
    while True:
        yield from reader.skip(_SPACE)
        character = reader.text[reader.position]
        if character in reader.ends.first and (yield from reader.drop_end()):
            continue
        match expect:
            case _Expect.COLON:
                if character != ":":
                    raise Malformed
                reader.position += 1
                expect = _Expect.VALUE
                continue
            case _Expect.COMMA_OR_CLOSE if character == ",":
                reader.position += 1
                expect = _Expect.KEY if closers[-1] == "}" else _Expect.VALUE
                continue
            case _Expect.COMMA_OR_CLOSE | _Expect.ITEM_OR_CLOSE | _Expect.KEY_OR_CLOSE if character == closers[-1]:
                reader.position += 1
                closers.pop()
            case _Expect.COMMA_OR_CLOSE:
                raise Malformed
            case _Expect.KEY | _Expect.KEY_OR_CLOSE:
                if character != '"':
                    raise Malformed
                yield from _string(reader, controls)
                expect = _Expect.COLON
                continue
            case _ if character == '"':
                yield from _string(reader, controls)
            case _ if character in "{[":
                if len(closers) == MAX_NESTING:
                    raise Malformed
                reader.position += 1
                closers.append("}" if character == "{" else "]")
                expect = _Expect.KEY_OR_CLOSE if character == "{" else _Expect.ITEM_OR_CLOSE
                continue
            case _:
                yield from _scalar(reader)
        if not closers:
            return
        expect = _Expect.COMMA_OR_CLOSE


def _string(reader: Reader, controls: Controls = "refused") -> Reading[None]:
    """Take a string from its opening quote through its closing one. Here long arguments spend their time."""
    reader.position += 1
    run = _STRING.match
    while True:
        text = reader.text
        found = run(text, reader.position)
        position = reader.position = found.end() if found else reader.position
        if position == len(text):
            if reader.copying is not None:
                reader.flush()
                reader.wait_in_plain_text(Plain(_NOT_ALL_STRING, reader.copying))
            yield
        elif text[position] == '"':
            reader.position += 1
            return
        elif text[position] == "\\":
            yield from _escape(reader)
        elif controls == "escaped":
            reader.copy_as(quote(text[position]))
        else:
            raise Malformed


def _escape(reader: Reader) -> Reading[None]:
    reader.position += 1
    kind = yield from reader.peek()
    if kind in _ESCAPES:
        reader.position += 1
        return
    if kind != "u":
        raise Malformed
    reader.position += 1
    for _ in range(4):
        if (yield from reader.peek()) not in _HEX:
            raise Malformed
        reader.position += 1


def _scalar(reader: Reader) -> Reading[None]:
    """Take a number or one of the three words."""
    word = _WORDS.get(reader.text[reader.position])
    if word is not None:
        yield from reader.take(word)
        return
    state = ""
    while True:
        try:
            character = yield from reader.peek()
        except EndOfText:
            if state in _NUMBER_MAY_END:
                return
            raise
        following = _NUMBER[state].get(character)
        if following is None:
            if state in _NUMBER_MAY_END:
                return
            raise Malformed
        reader.position += 1
        state = following


def read_string(reader: Reader, controls: Controls = "refused") -> Reading[str]:
    """Take one JSON string and decode it. Raises Malformed where none comes."""
    if (yield from reader.peek()) != '"':
        raise Malformed
    pieces: list[str] = []
    yield from reader.copy(pieces.append, _string(reader, controls))
    return str(json.loads("".join(pieces)))


def is_object(text: str) -> bool:
    """Whether `text` is one strict JSON object, white space round it aside."""
    reader = Reader()
    reader.push(text.strip(" \t\n\r"))
    if not reader.text.startswith("{"):
        return False
    try:
        next(_value(reader))
    except StopIteration:
        return reader.position == len(reader.text)
    except Malformed:
        return False
    return False


JSON_SPECIAL = r'"\\\x00-\x1f\ud800-\udfff'
"""The inside of a character class: what cannot stand in a JSON string as it is."""


def quote(text: str) -> str:
    """`text` as the inside of a JSON string: non-ASCII as it is, except a lone surrogate, which no text can hold."""
    inside = encode_string(text)[1:-1]
    if inside.isascii():
        return inside
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", inside) if _SURROGATE.search(inside) else inside


_SURROGATE = re.compile(r"[\ud800-\udfff]")
encode_string: Callable[[str], str] = json.encoder.encode_basestring
"""`text` as a JSON string with its quotes, non-ASCII as it is; a lone surrogate too, which `quote` escapes."""
