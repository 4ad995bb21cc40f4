"""What the text of a field is: the content parsers of response templates."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from streamsieve.parsers.errors import ConfigurationError, unknown_choice
from streamsieve.parsers.response_template.loose_json import Dialect, closed_members, loose_value


class Unparsable(ValueError):
    """The text of a field is not what its parser wants."""


@dataclass(frozen=True)
class BodyParser(ABC):
    """Makes a value, of what JSON has, of the text of a field."""

    @abstractmethod
    def value(self, text: str) -> object:
        """The value of the whole text. Raises Unparsable."""

    def closed(self, text: str) -> dict[str, object] | None:
        """The members of an object that are complete in `text`, which is cut off; None where no object has begun."""
        return None


@dataclass(frozen=True)
class Scalar(BodyParser):
    """`text`, stripped, or a number or a word."""

    kind: str = "text"

    def value(self, text: str) -> object:
        """The value of the whole text."""
        try:
            return _SCALARS[self.kind](text.strip())
        except (ValueError, KeyError, OverflowError) as error:
            raise Unparsable(self.kind) from error


def _truth(word: str) -> object:
    return {"true": True, "false": False, "1": True, "0": False}[word.lower()]


_SCALARS: dict[str, Callable[[str], object]] = {"text": str, "int": int, "float": float, "bool": _truth}


@dataclass(frozen=True)
class Json(BodyParser):
    """JSON, or with a `dialect` something near it; with `or_text` what is none of it is text."""

    dialect: Dialect | None = None
    or_text: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the text is JSON itself, so that arguments may be passed on as written."""
        return self.dialect is None

    def value(self, text: str) -> object:
        """The value of the whole text."""
        try:
            return json.loads(text) if self.dialect is None else loose_value(text, self.dialect)
        except (ValueError, RecursionError) as error:
            if self.or_text:
                return text.strip()
            raise Unparsable("json") from error

    def closed(self, text: str) -> dict[str, object] | None:
        """The members that are complete in a text that is cut off."""
        return closed_members(text, self.dialect or Dialect())


@dataclass(frozen=True)
class TaggedPairs(BodyParser):
    """`xml-inline`: pairs, each as `tag` with its groups `key` and `value`; only white space stands between."""

    tag: str
    values: BodyParser = Scalar()
    merges: bool = False

    def value(self, text: str) -> object:
        """The value of the whole text."""
        pairs, end = self._pairs(text)
        if text[end:].strip():
            raise Unparsable("xml-inline")
        return pairs

    def closed(self, text: str) -> dict[str, object] | None:
        """The pairs that are complete in a text that is cut off."""
        try:
            return self._pairs(text)[0]
        except Unparsable:
            return {}

    def _pairs(self, text: str) -> tuple[dict[str, object], int]:
        pairs: dict[str, object] = {}
        end = 0
        for found in _pattern(self.tag).finditer(text):
            if text[end : found.start()].strip():
                raise Unparsable("xml-inline")
            end = found.end()
            _add(pairs, found["key"], self.values.value(found["value"] or ""), merges=self.merges)
        return pairs, end


@dataclass(frozen=True)
class KeyValueLines(BodyParser):
    """`kv-lines`: one pair a line."""

    line_separator: str = "\n"
    key_separator: str = ":"
    values: BodyParser = Scalar()

    def value(self, text: str) -> object:
        """The value of the whole text."""
        pairs: dict[str, object] = {}
        for line in filter(str.strip, text.split(self.line_separator)):
            key, separator, value = line.partition(self.key_separator)
            if not separator or not key.strip():
                raise Unparsable("kv-lines")
            _add(pairs, key.strip(), self.values.value(value), merges=False)
        return pairs

    def closed(self, text: str) -> dict[str, object] | None:
        """The pairs whose lines have ended in a text that is cut off."""
        lines, _, _ = text.rpartition(self.line_separator)
        try:
            value = self.value(lines)
        except Unparsable:
            return {}
        return value if isinstance(value, dict) else {}


def _add(pairs: dict[str, object], key: str, value: object, *, merges: bool) -> None:
    if merges and key in pairs:
        before = pairs[key]
        value = [*before, value] if isinstance(before, list) else [before, value]
    pairs[key] = value


@lru_cache(maxsize=256)
def _pattern(tag: str) -> re.Pattern[str]:
    return re.compile(tag, re.DOTALL)


def body_parser(name: object, arguments: Mapping[str, object], where: str) -> BodyParser:
    """The content parser of that name. Raises ConfigurationError, which says `where`, for what it does not know."""
    if not isinstance(name, str) or name not in _MAKERS:
        raise unknown_choice(where, name, _MAKERS)
    make, keys = _MAKERS[name]
    if unknown := set(arguments) - set(keys):
        raise unknown_choice(f"{where} {name}: content_args", min(unknown), keys)
    return make(name, arguments, where)


def _scalar(name: str, arguments: Mapping[str, object], where: str) -> BodyParser:
    return Scalar(name)


def _json(name: str, arguments: Mapping[str, object], where: str) -> BodyParser:
    delimiters = arguments.get("string_delims", [])
    if not isinstance(delimiters, list) or not all(_is_pair(pair) for pair in delimiters):
        raise ConfigurationError(f"{where}: string_delims is no list of pairs of strings")
    bare_keys = arguments.get("unquoted_keys") is True
    or_text = arguments.get("allow_non_json") is True
    if not delimiters and not bare_keys:
        return Json(or_text=or_text)
    return Json(Dialect(tuple((pair[0], pair[1]) for pair in delimiters), bare_keys=bare_keys), or_text=or_text)


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) and one for one in pair)


def _tagged_pairs(name: str, arguments: Mapping[str, object], where: str) -> BodyParser:
    tag = arguments.get("tag_pattern")
    try:
        groups = set(re.compile(tag).groupindex) if isinstance(tag, str) else set()
    except re.error as error:
        raise ConfigurationError(f"{where}: tag_pattern {tag!r}: {error}") from error
    if not isinstance(tag, str) or not groups >= {"key", "value"}:
        raise ConfigurationError(f"{where}: tag_pattern needs the groups key and value, got {tag!r}")
    return TaggedPairs(tag, _values(arguments, where), arguments.get("merge_duplicates") is True)


def _lines(name: str, arguments: Mapping[str, object], where: str) -> BodyParser:
    separators = [arguments.get("line_sep", "\n"), arguments.get("kv_sep", ":")]
    line, key = (one if isinstance(one, str) else "" for one in separators)
    if not line or not key:
        raise ConfigurationError(f"{where}: line_sep and kv_sep are strings with something in them, got {separators}")
    return KeyValueLines(line, key, _values(arguments, where))


def _values(arguments: Mapping[str, object], where: str) -> BodyParser:
    return body_parser(arguments.get("value_parser", "text"), {}, f"{where} value_parser")


_Maker = Callable[[str, Mapping[str, object], str], BodyParser]
_MAKERS: dict[str, tuple[_Maker, tuple[str, ...]]] = {
    **dict.fromkeys(_SCALARS, (_scalar, ())),
    "json": (_json, ("string_delims", "unquoted_keys", "allow_non_json")),
    "xml-inline": (_tagged_pairs, ("tag_pattern", "value_parser", "merge_duplicates")),
    "kv-lines": (_lines, ("line_sep", "kv_sep", "value_parser")),
}
