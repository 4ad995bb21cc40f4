"""Values of a JSON schema as they stand in a call: what the writings of the call syntaxes have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers import tag_parts
from streamsieve.parsers.arguments.narrowed_pattern import narrowed, other_than
from streamsieve.parsers.arguments.schema_choices import ANY_KIND, Choice, Members, alone, choices
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import JsonObject, Part, either, listed, optional, pattern, repeated, sequence

_DEPTH = 4
"""How deep containers are written in a syntax's own way; deeper, also where a schema refers to itself, as JSON."""
_TUPLES = ("prefixItems", "contains", "uniqueItems")


def raw_text(choice: Choice, stops: Sequence[str]) -> list[Part]:
    """The ways in which a string of `choice` can stand raw, `stops` being what may end it."""
    if choice.values:
        return [str(value) for value in choice.values if not any(stop in str(value) for stop in stops)]
    barred = "".join(sorted({stop[0] for stop in stops}))
    schema = choice.schema
    if isinstance(regex := schema.get("pattern"), str):
        return [pattern(narrowed(regex, barred))]
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) or isinstance(most, int):
        return [pattern(f"{other_than(barred)}{{{least or 0},{'' if most is None else most}}}")]
    return [tag_parts.text(stops)]


def one_of(parts: Iterable[Part], what: str) -> JsonObject:
    """Any of `parts`. Raises Inexpressible where there are none: `what` cannot be written."""
    found = list(parts)
    if not found:
        raise Inexpressible(f"{what}: no value that its schema allows can be written")
    return either(*found)


def in_order(parts: Sequence[tuple[Part, bool]], between: str = "", others: Part | None = None) -> JsonObject:
    """Parts in their order, each with whether it has to be there, then `others`; `between` stands between any two."""
    if not between:
        own = [part if needed else optional(part) for part, needed in parts]
        return sequence(*own, *([repeated(others)] if others else []))

    def rest(index: int) -> list[JsonObject]:
        more = [sequence(between, part) if needed else optional(between, part) for part, needed in parts[index:]]
        return [*more, *([repeated(between, others)] if others else [])]

    first = next((index for index, (_, needed) in enumerate(parts) if needed), None)
    starts = [
        sequence(part, *rest(index + 1))
        for index, (part, _) in enumerate(parts[: None if first is None else first + 1])
    ]
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
    def other_key(self, declared: Iterable[str]) -> Part:
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
            case "array" if not choice.values and depth < _DEPTH and not any(key in choice.schema for key in _TUPLES):
                return [self._array(what, choice.schema, root, depth)]
            case "object" if not choice.values and depth < _DEPTH and "patternProperties" not in choice.schema:
                return [sequence("{", self.members(what, Members.of(choice.schema), root, depth + 1), "}")]
            case kind if kind == ANY_KIND and not choice.values:
                return [self.anything()]
            case "integer" | "number":
                values = {"enum": list(choice.values)} if choice.values else choice.schema
                return [tag_parts.json(values)]
            case _:
                values = {"enum": list(choice.values)} if choice.values else alone(choice.schema, root)
                return [self.as_json(values)]

    def _array(self, what: str, schema: JsonSchema, root: JsonSchema, depth: int) -> JsonObject:
        least, most = schema.get("minItems"), schema.get("maxItems")
        item = self.value(f"{what}[]", schema.get("items", {}), root, depth + 1)
        items = listed(
            item, self.comma, least if isinstance(least, int) else 0, most if isinstance(most, int) else None
        )
        return sequence("[", items, "]")

    def members(self, what: str, members: Members, root: JsonSchema, depth: int = 0) -> JsonObject:
        """The members of an object, without its braces."""
        own = [
            (
                sequence(self.key(key), self.colon, self.value(f"{what}.{key}", schema, root, depth)),
                key in members.required,
            )
            for key, schema in members.declared.items()
        ]
        if members.others is None:
            return in_order(own, self.comma)
        value = self.value(f"{what}.*", members.others, root, depth)
        return in_order(own, self.comma, sequence(self.other_key(members.declared), self.colon, value))
