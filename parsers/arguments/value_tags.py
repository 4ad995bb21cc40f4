"""Values of a JSON schema as they stand in a call: what the writings of the call syntaxes have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers import tag_parts
from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.arguments.narrowed_pattern import WHITE, narrowed, other_than
from streamsieve.parsers.arguments.schema_choices import ANY_KIND, Choice, Members, choices, is_plain
from streamsieve.parsers.arguments.schema_types import BY_SCHEMA, Typing, is_plain_string, write_json
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import JsonObject, Part, either, listed, optional, pattern, repeated, sequence

_STARTS = 64
"""With how many members a list of members may begin: the grammar grows with the square of that."""
ITEMS = ("minItems", "maxItems")
_LENGTHS = ("minLength", "maxLength")
_VALUES = frozenset({"enum", "const", "default", "examples"})
"""Hold values, and no schemas."""
_WHITE = " \t\r\n"
SAMPLES: dict[str, object] = {
    "string": "word",
    "integer": 7,
    "number": 0.5,
    "boolean": True,
    "null": None,
    "array": ["word"],
    "object": {"key": 1},
}
"""One value of each kind."""


def is_read_as_json(kind: str, types: frozenset[str], typing: Typing = BY_SCHEMA) -> bool:
    """Whether `typing` makes of a JSON text of this kind the value that it says."""
    text = write_json(SAMPLES[kind])
    return not is_plain_string(types) and typing.convert(text, types) == text


def is_read_as_text(text: str, types: frozenset[str], typing: Typing = BY_SCHEMA) -> bool:
    """Whether `typing` makes of `text` this very string."""
    return is_plain_string(types) or typing.convert(text, types) == f'"{quote(text)}"'


def raw_text(choice: Choice, stops: Sequence[str], *, trimmed: bool = False) -> list[Part]:
    """The ways in which a string of `choice` can stand raw, `stops` being what may end it.

    `trimmed`: white space round it is no part of it.
    """
    if choice.values:
        return [str(value) for value in choice.values if not any(stop in str(value) for stop in stops)]
    regex = _pattern(choice.schema, _barred(stops), trimmed=trimmed)
    return [tag_parts.text(stops) if regex is None else pattern(regex)]


def raw_json(schema: JsonSchema, stops: Sequence[str]) -> JsonObject:
    """JSON of `schema` that can stand raw: without `stops` in its strings."""
    return tag_parts.json(_without(schema, _barred(stops)), stops)


def _barred(stops: Sequence[str]) -> str:
    """Characters without which a text has none of `stops` in it."""
    return "".join(sorted({stop[0] for stop in stops}))


def _without(schema: JsonSchema, barred: str) -> dict[str, object]:
    """A schema whose strings have none of the characters `barred` where their pattern or length is asked for, which
    xgrammar does not combine with excluded texts."""
    regex = _pattern(schema, barred)
    kept = {key: value for key, value in schema.items() if key not in _LENGTHS or regex is None}
    said = {key: value if key in _VALUES else _part_without(value, barred) for key, value in kept.items()}
    return said if regex is None else {**said, "pattern": regex}


def _part_without(part: object, barred: str) -> object:
    if isinstance(part, Mapping):
        return _without(part, barred)
    return [_part_without(one, barred) for one in part] if isinstance(part, list) else part


def _pattern(schema: JsonSchema, barred: str, *, trimmed: bool = False) -> str | None:
    """What a string of `schema` matches that has none of the characters `barred`; None where nothing is asked of it."""
    if isinstance(regex := schema.get("pattern"), str):
        return narrowed(regex, barred + _WHITE if trimmed else barred)
    least, most = bounds(schema, *_LENGTHS)
    if least == 0 and most is None:
        return None
    return _of_length(least, most, other_than(barred), other_than(barred, WHITE if trimmed else ""))


def _of_length(least: int, most: int | None, inner: str, edge: str) -> str:
    """Text of so many characters of the class `inner`, of `edge` at its ends."""
    if most is not None and most < 2:
        return f"{edge}{{{least},{most}}}"
    upper = "" if most is None else most - 2
    shorter = (f"|{edge}" if least < 2 else "") + ("|" if least < 1 else "")
    return f"(?:{edge}{inner}{{{max(least - 2, 0)},{upper}}}{edge}{shorter})"


def bounds(schema: JsonSchema, least: str, most: str) -> tuple[int, int | None]:
    """What a schema says under two of its keys of how much there has to be and may be."""
    low, high = schema.get(least), schema.get(most)
    return low if isinstance(low, int) else 0, high if isinstance(high, int) else None


def one_of(parts: Iterable[Part], what: str) -> JsonObject:
    """Any of `parts`. Raises Inexpressible where there are none: `what` cannot be written."""
    found = list(parts)
    if not found:
        raise Inexpressible(f"{what}: no value that its schema allows can be written")
    return either(*found)


def in_order(
    members: Members, written: Callable[[str, object], Part], between: str = "", others: Part | None = None
) -> JsonObject:
    """The members that are declared, each as `written` by its key and its schema, in their order, then `others`.

    `between` stands between any two.
    """
    parts = [(written(key, schema), key in members.required) for key, schema in members.declared.items()]
    if not between:
        own = [part if needed else optional(part) for part, needed in parts]
        return sequence(*own, *([repeated(others)] if others else []))

    def rest(index: int) -> list[JsonObject]:
        more = [sequence(between, part) if needed else optional(between, part) for part, needed in parts[index:]]
        return [*more, *([repeated(between, others)] if others else [])]

    first = next((index for index, (_, needed) in enumerate(parts) if needed), None)
    may_start = len(parts) if first is None else first + 1
    if may_start > _STARTS:
        raise Inexpressible(f"{may_start} parameters that may be absent come before the first that has to be there")
    starts = [sequence(part, *rest(index + 1)) for index, (part, _) in enumerate(parts[:may_start])]
    if first is not None:
        return either(*starts)
    starts += [sequence(others, *rest(len(parts)))] if others else []
    return optional(either(*starts)) if starts else sequence()


@dataclass(frozen=True)
class ValueSyntax(ABC):
    """How values are written that are neither JSON nor raw text."""

    comma: ClassVar[str] = ", "
    colon: ClassVar[str] = ": "
    words: ClassVar[tuple[str, str, str]] = ("true", "false", "null")

    @abstractmethod
    def strings(self, choice: Choice) -> list[Part]:
        """The ways to write a string of `choice`."""

    @abstractmethod
    def key(self, key: str) -> str:
        """A key of an object."""

    @abstractmethod
    def other_key(self, declared: Collection[str]) -> Part:
        """A key that is none of those that the schema declares."""

    @abstractmethod
    def as_json(self, schema: JsonSchema) -> Part:
        """A value of `schema` as JSON, where the syntax's own way would be too much to say."""

    @abstractmethod
    def anything(self) -> Part:
        """A value of which nothing is said."""

    def value(self, what: str, schema: object, root: JsonSchema, depth: int = 0) -> JsonObject:
        """A value of `schema`, a part of `root`; `what` names it in errors."""
        parts = (part for choice in choices(schema, root) for part in self._choice(what, choice, root, depth))
        return one_of(parts, what)

    def _choice(self, what: str, choice: Choice, root: JsonSchema, depth: int) -> Iterable[Part]:
        match choice.kind:
            case "string":
                return self.strings(choice)
            case "boolean":
                said = choice.values or (True, False)
                return [word for word, value in zip(self.words, (True, False), strict=False) if value in said]
            case "null":
                return [self.words[2]]
            case "array" if is_plain(choice, root, depth):
                return [self._array(what, choice.schema, root, depth)]
            case "object" if is_plain(choice, root, depth):
                return [sequence("{", self.members(what, Members.of(choice.schema), root, depth + 1), "}")]
            case kind if kind == ANY_KIND and not choice.values:
                return [self.anything()]
            case "integer" | "number":
                return [tag_parts.json(choice.alone(root))]
            case _:
                return [self.as_json(choice.alone(root))]

    def _array(self, what: str, schema: JsonSchema, root: JsonSchema, depth: int) -> JsonObject:
        item = self.value(f"{what}[]", schema.get("items", {}), root, depth + 1)
        return sequence("[", listed(item, self.comma, *bounds(schema, *ITEMS)), "]")

    def members(self, what: str, members: Members, root: JsonSchema, depth: int = 0) -> JsonObject:
        """The members of an object, without its braces."""

        def written(key: str, schema: object) -> JsonObject:
            return sequence(self.key(key), self.colon, self.value(f"{what}.{key}", schema, root, depth))

        if members.others is None:
            return in_order(members, written, self.comma)
        value = self.value(f"{what}.*", members.others, root, depth)
        others = sequence(self.other_key(members.declared), self.colon, value)
        return in_order(members, written, self.comma, others)
