"""A regular expression that cannot match certain characters: for text that one of them may end."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable

from streamsieve.parsers.errors import Inexpressible

_ONE = r"\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
_TOKEN = re.compile(rf"{_ONE}|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_CLASS_ITEM = re.compile(rf"(?P<first>{_ONE}|[^\\])-(?P<last>{_ONE}|[^\\\]])|{_ONE}|.", re.DOTALL)
_CONTROLS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
_SPECIAL = re.compile(r"[][\\^$.|?*+(){}-]")
_LETTERS = "A-Za-z_"
_ALPHABET = f"{string.ascii_letters}_{string.digits}"
WHITE = "\\s"
_COMPLEMENTS = {"\\D": "\\d", "\\S": "\\s", "\\W": "\\w"}


def narrowed(pattern: str, barred: str) -> str:
    """`pattern` without the characters `barred` in what its classes and its dots match.

    Raises Inexpressible where it asks for one of them.
    """
    return "".join(_narrowed(token, "".join(map(escaped, barred)), barred) for token in _TOKEN.findall(pattern))


def escaped(text: str) -> str:
    """`text` as a pattern for itself, in a class or outside."""
    return _SPECIAL.sub(r"\\\g<0>", text).translate(_CONTROLS)


def other_than(characters: str, classes: str = "") -> str:
    """A class of every character but these, and but those of `classes`."""
    return f"[^{''.join(map(escaped, characters))}{classes}]"


def not_starting_with(words: Collection[str]) -> tuple[str, str]:
    """Two patterns for texts that begin, white space aside, with none of `words`: for what shows it, behind which
    anything may follow, and for the whole of a text that ends before it shows."""
    following = _following(words)
    shown = (
        f"{escaped(start)}{other_than(next_ones, '' if start else WHITE)}"
        for start, next_ones in following.items()
        if start not in words
    )
    short = (escaped(start) for start in following if start not in words)
    return rf"\s*(?:{'|'.join(shown)})", rf"\s*(?:{'|'.join(short)})"


def other_words(words: Collection[str]) -> str:
    """A pattern for identifiers that are none of `words`."""
    patterns = [] if words else [f"[{_LETTERS}][{_LETTERS}0-9]*"]
    for start, next_ones in _following(words).items():
        allowed = "".join(one for one in _ALPHABET[: None if start else -10] if one not in next_ones)
        patterns.append(f"{escaped(start)}[{allowed}][{_LETTERS}0-9]*")
        patterns += [escaped(start)] if start and start not in words else []
    return f"(?:{'|'.join(patterns)})"


def _following(words: Iterable[str]) -> dict[str, str]:
    """Each beginning of `words`, themselves too, and the characters with which one of them goes on."""
    found: dict[str, str] = {}
    for word in words:
        for length in range(len(word) + 1):
            next_ones = found.setdefault(word[:length], "")
            if word[length : length + 1] not in next_ones:
                found[word[:length]] += word[length]
    return found


def _narrowed(token: str, barred_escaped: str, barred: str) -> str:
    if token == ".":
        return f"[^\\n\\r{barred_escaped}]"
    if token in _COMPLEMENTS:
        return f"[^{_COMPLEMENTS[token]}{barred_escaped}]"
    if token.startswith("[^"):
        return f"[^{barred_escaped}{token[2:]}"
    if len(token) > 1 and token.startswith("["):
        items = _items(token[1:-1], barred)
        if not items:
            raise _asks_for(token)
        return f"[{''.join(items)}]"
    if _plain(token) in barred or (token == WHITE and " " in barred):
        raise _asks_for(token)
    return token


def _items(inside: str, barred: str) -> list[str]:
    items: list[str] = []
    for item in _CLASS_ITEM.finditer(inside):
        first, last = item["first"], item["last"]
        white = item[0] == WHITE and " " in barred
        if not first and (white or item[0] in _COMPLEMENTS or _plain(item[0]) in barred):
            raise _asks_for(item[0])
        if not first or not any(_plain(first) <= one <= _plain(last) for one in barred):
            items.append(item[0])
            continue
        start = ord(_plain(first))
        for one in sorted({*barred, chr(ord(_plain(last)) + 1)}):
            if start < ord(one) <= ord(_plain(last)) + 1:
                items.append(f"{escaped(chr(start))}-{escaped(chr(ord(one) - 1))}")
            start = max(start, ord(one) + 1)
    return items


def _plain(character: str) -> str:
    """The character that a token stands for, if it stands for one."""
    if len(character) > 2 and character[:2] in ("\\x", "\\u"):
        return chr(int(character[2:], 16))
    return character.removeprefix("\\")


def _asks_for(what: str) -> Inexpressible:
    return Inexpressible(f"a pattern asks for {what!r}, which may end the value")
