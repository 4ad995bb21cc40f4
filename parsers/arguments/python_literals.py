"""Python literals read as they come and written as JSON; nothing is ever evaluated."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.arguments.json_text import JSON_SPECIAL, MAX_NESTING, quote
from streamsieve.parsers.arguments.object_writer import ObjectWriter
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Plain, Reader, Reading, Search, Write

_WORD = re.compile(r"\w*")
_NUMBER = re.compile(r"[\w.]*")
_INTEGER = re.compile(r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F_]+)|0[bB](?P<binary>[01_]+)|0[oO](?P<octal>[0-7_]+)"
                      r"|(?P<decimal>[0-9](?:_?[0-9])*))")  # fmt: skip
_FLOAT = re.compile(r"[+-]?(?:{0}\.?(?:{0})?|\.{0})(?:[eE][+-]?{0})?".format(r"[0-9](?:_?[0-9])*"))
_CONSTANTS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_ESCAPES = {"\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r",
            "t": "\t", "v": "\v"}  # fmt: skip
_CODE_DIGITS = {"x": 2, "u": 4, "U": 8}
_OCTAL = frozenset("01234567")
_HEX = frozenset("0123456789abcdefABCDEF")
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_AFTER_STRING = frozenset(",)]}:")

StringEnd = Literal["quote", "quote_and_delimiter"]
"""Where a string ends: at its quote, or only at one that a comma, a colon or a closing bracket follows,
white space aside; other quotes are its text then."""


def read_argument(reader: Reader, arguments: ObjectWriter, key: str, string_end: StringEnd = "quote") -> Reading[None]:
    """Take one value and write it as the member `key`: a string as it comes, any other when it is complete.

    Raises Malformed where no literal comes: a bare name, an expression, an f-string with a field.
    """
    opening = yield from _string_opening(reader, string_end)
    if isinstance(opening, _Quotes):
        value = arguments.open_string(key, "none")
        yield from _string(reader, opening, value.text, value.json)
        value.close()
    else:
        arguments.value(key, (yield from _value(reader, opening, string_end)))


@dataclass(frozen=True, slots=True)
class _Quotes:
    """How a string began: its quote, once or three times, and its prefix letter; and where it ends."""

    quote: str
    prefix: str
    end: StringEnd


def _string_opening(reader: Reader, end: StringEnd) -> Reading[_Quotes | str]:
    """Take the opening of a string, or else the word that comes (empty where none does)."""
    if (yield from reader.peek_after_space()).isdigit():
        return ""
    word = yield from reader.run(_WORD)
    quote_mark = yield from reader.peek() if len(word) < 2 else _none()
    if quote_mark not in ("'", '"') or word not in ("", *"rRfFuU"):
        return word
    reader.position += 1
    if (yield from reader.takes(Markers.of(quote_mark * 2))):
        return _Quotes(quote_mark * 3, word.lower(), end)
    return _Quotes(quote_mark, word.lower(), end)


def _none() -> Reading[str]:
    return ""
    yield


def _string(reader: Reader, quotes: _Quotes, write: Write, write_json: Write | None = None) -> Reading[None]:
    """Take a string through its closing quotes, decoded by Python's escape rules; a raw line break is accepted.

    Text that JSON would write as it stands there goes to `write_json`, where that is given.
    """
    mark = quotes.quote[0]
    run, special = _RUNS[mark, quotes.prefix]
    plain = Plain(special, write_json) if write_json else None
    closing = Markers.of(quotes.quote)
    while True:
        text, position = reader.text, reader.position
        found = run(text, position)
        if found and found.group():
            write(found.group() if quotes.prefix == "r" else _decode(found.group()))
            position = reader.position = found.end()
        if position == len(text):
            if plain:
                reader.wait_in_plain_text(plain)
            yield
            continue
        character = text[position]
        if character == mark:
            if not (yield from reader.takes(closing)):
                reader.position += 1
                write(mark)
            elif quotes.end == "quote" or (space := (yield from _space_in_string(reader))) is None:
                return
            else:
                write(quotes.quote + space)
        elif character != "\\":  # a brace of an f-string: doubled it is itself, else it opens a field
            yield from reader.take(character * 2)
            write(character)
        elif quotes.prefix == "r":
            reader.position += 1
            write("\\" + (yield from reader.peek()))
            reader.position += 1
        else:
            reader.position += 1
            yield from _escape(reader, write)


def _space_in_string(reader: Reader) -> Reading[str | None]:
    """The white space behind a quote, where the string goes on there; None where it ends, as it does with the text."""
    space = yield from reader.space()
    try:
        return None if (yield from reader.peek()) in _AFTER_STRING else space
    except EndOfText:
        return None


def _decode(text: str) -> str:
    """`text`, whose only escapes are a backslash and one letter, decoded."""
    return _SIMPLE_ESCAPE.sub(_simple, text) if "\\" in text else text


def _simple(escape: re.Match[str]) -> str:
    return _ESCAPES[escape[1]]


def _runs(mark: str, prefix: str) -> tuple[Callable[[str, int], re.Match[str] | None], Search]:
    """What matches the text of such a string up to what needs a closer look, and what finds that any of a text does.

    Most escapes mean the same in JSON, so they may stay as they are.
    """
    braces = "{}" if prefix == "f" else ""
    escapes = "" if prefix == "r" else r"|\\[abfnrtv\\'\"]"
    common = "" if prefix == "r" else r"|\\[bfnrt\\\"]"
    text = rf"(?:[^{mark}\\{braces}]++{escapes})*+"
    as_json = rf"(?:[^{mark}{JSON_SPECIAL}{braces}]++{common})*+"
    return re.compile(text).match, re.compile(rf"(?!{as_json}\Z)").match


_SIMPLE_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_RUNS = {(mark, prefix): _runs(mark, prefix) for mark in "'\"" for prefix in ("", "r", "f", "u")}


def _escape(reader: Reader, write: Write) -> Reading[None]:
    kind = yield from reader.peek()
    reader.position += 1
    if kind in _CODE_DIGITS:
        code = yield from _code(reader, _CODE_DIGITS[kind])
        if kind == "u" and 0xD800 <= code < 0xDC00 and (yield from reader.takes(Markers.of("\\u"))):
            low = yield from _code(reader, 4)
            if 0xDC00 <= low < 0xE000:
                write(chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)))
                return
            write(chr(code))
            code = low
        write(chr(code))
    elif kind in _OCTAL:
        digits = kind
        while len(digits) < 3 and (following := (yield from reader.peek())) in _OCTAL:
            digits += following
            reader.position += 1
        write(chr(int(digits, 8)))
    elif kind == "N":
        yield from reader.take("{")
        name = yield from reader.run(_NAME_OF_CHARACTER)
        yield from reader.take("}")
        try:
            write(unicodedata.lookup(name))
        except KeyError:
            raise Malformed from None
    else:
        write(_ESCAPES.get(kind, "\\" + kind))


_NAME_OF_CHARACTER = re.compile(r"[A-Za-z0-9 -]*")


def _code(reader: Reader, size: int) -> Reading[int]:
    digits = ""
    while len(digits) < size:
        digit = yield from reader.peek()
        if digit not in _HEX:
            raise Malformed
        digits += digit
        reader.position += 1
    code = int(digits, 16)
    if code > 0x10FFFF:
        raise Malformed
    return code


@dataclass(slots=True)
class _Open:
    """A container that is being read, and where its text begins in what is written."""

    closer: str
    index: int
    is_dict: bool | None = None  # None: braces whose first element has not told yet
    size: int = 0
    comma: bool = True  # an element may come
    key: bool = False  # the present element is the value of a key


def _value(reader: Reader, word: str, string_end: StringEnd) -> Reading[str]:
    """Take one value that is no string, `word` of it being taken; returns it as JSON text.

    Raises Malformed also where it nests deeper than `MAX_NESTING`.
    """
    written: list[str] = []
    opened: list[_Open] = []
    while True:
        yield from _element(reader, word, written, opened, string_end)
        word = ""
        while opened and (yield from _after_element(reader, written, opened[-1])):
            _close(opened.pop(), written)
        if not opened:
            return "".join(written)


def _element(
    reader: Reader, word: str, written: list[str], opened: list[_Open], string_end: StringEnd
) -> Reading[None]:
    """Take the next scalar or empty container, and the openings of the containers round it."""
    while True:
        character = (yield from reader.peek_after_space()) if not word else ""
        if opened and character == opened[-1].closer and not opened[-1].key:
            reader.position += 1
            _close(opened.pop(), written)
            return
        if opened:
            top = opened[-1]
            if top.size and not top.key:
                written.append(", ")
            top.size += not top.key
        if character not in _CLOSERS or not character:
            written.append((yield from _scalar(reader, word, string_end)))
            return
        if len(opened) == MAX_NESTING:
            raise Malformed
        reader.position += 1
        opened.append(_Open(_CLOSERS[character], len(written), is_dict=None if character == "{" else False))
        written.append({"[": "[", "(": "["}.get(character, "{"))


def _after_element(reader: Reader, written: list[str], top: _Open) -> Reading[bool]:
    """Take what follows an element; True where the container ends with it."""
    following = yield from reader.peek_after_space()
    if following == ":" and not top.key and top.is_dict is not False and len(written) - 1 > top.index:
        if written[-1] in ("]", "}"):
            raise Malformed  # no container is a key of a JSON object
        top.is_dict = top.key = True
        written[-1] = written[-1] if written[-1].startswith('"') else f'"{written[-1]}"'
        written.append(": ")
        reader.position += 1
        return False
    if top.is_dict and not top.key:
        raise Malformed
    if following == ",":
        top.is_dict = bool(top.is_dict)
        top.key = False
        top.comma = True
        reader.position += 1
        return False
    if following != top.closer:
        raise Malformed
    top.comma = False
    reader.position += 1
    return True


def _close(container: _Open, written: list[str]) -> None:
    """End a container; braces without keys are a set, and parentheses round one value are only parentheses."""
    if container.closer == "}" and (container.is_dict or not container.size):
        written.append("}")
    elif container.closer == ")" and container.size == 1 and not container.comma:
        written[container.index] = ""
    else:
        written[container.index] = "["
        written.append("]")


def _scalar(reader: Reader, word: str, string_end: StringEnd) -> Reading[str]:
    """Take a string, a number or a constant, of which `word` is taken; returns it as JSON text."""
    opening = word or (yield from _string_opening(reader, string_end))
    if isinstance(opening, _Quotes):
        pieces: list[str] = []
        yield from _string(reader, opening, pieces.append)
        return f'"{quote("".join(pieces))}"'
    if not opening:
        text = yield from _number_text(reader)
        if reader.is_over:  # more of it may have been to come, so it is no number yet
            raise EndOfText
        return number(text)
    if opening not in _CONSTANTS:
        is_cut = reader.is_over and any(constant.startswith(opening) for constant in _CONSTANTS)
        raise EndOfText if is_cut else Malformed
    if (yield from reader.peek()) == ".":
        raise Malformed
    return _CONSTANTS[opening]


def _number_text(reader: Reader) -> Reading[str]:
    text = ""
    if (yield from reader.peek()) in "+-":
        text = reader.text[reader.position]
        reader.position += 1
    text += yield from reader.run(_NUMBER)
    if (
        text[-1:] in ("e", "E")
        and not text.lower().lstrip("+-").startswith("0x")
        and (yield from reader.peek()) in "+-"
    ):
        text += reader.text[reader.position]
        reader.position += 1
        text += yield from reader.run(_NUMBER)
    return text


def number(text: str) -> str:
    """A Python number as JSON text. Raises Malformed for what is none, or none that JSON can have."""
    if found := _INTEGER.fullmatch(text):
        sign = "-" if found["sign"] == "-" else ""
        if decimal := found["decimal"]:
            digits = decimal.replace("_", "").lstrip("0") or "0"
        else:
            base, spelled = next((base, found[kind]) for kind, base in _BASES.items() if found[kind])
            try:
                digits = str(int(spelled.strip("_") or "0", base))
            except ValueError:  # more digits than Python converts; nobody else would either
                raise Malformed from None
        return digits if digits == "0" else sign + digits
    if not _FLOAT.fullmatch(text):
        raise Malformed
    value = float(text.replace("_", ""))
    if math.isinf(value):
        raise Malformed
    return repr(value)


_BASES = {"hex": 16, "binary": 2, "octal": 8}


def literal(text: str) -> str | None:
    """`text`, which starts and ends in something visible, as JSON text where it is one Python literal; else None."""
    reader = Reader()
    reader.push(f"{text}\n")
    try:
        next(reading := _value(reader, "", "quote"))
        reading.throw(EndOfText())
    except StopIteration as read:
        return str(read.value) if reader.position == len(text) else None
    except (Malformed, EndOfText):
        return None
    return None
