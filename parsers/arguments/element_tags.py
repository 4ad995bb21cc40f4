"""Arguments as nested elements, for structural tags: text typed by the schema, children, or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamsieve.parsers.arguments.schema_choices import ANY_KIND, Choice, Members, choices, is_plain
from streamsieve.parsers.arguments.schema_types import declared_types
from streamsieve.parsers.arguments.value_tags import (
    ITEMS,
    bounds,
    in_order,
    is_read_as_json,
    is_read_as_text,
    one_of,
    raw_json,
    raw_text,
)
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import JsonObject, Part, listed, sequence

_ITEM = "item"


@dataclass(frozen=True)
class ElementTags:
    """Elements whose tags begin with `tag`, by the schema `root`."""

    tag: str
    root: JsonSchema

    def members(self, what: str, members: Members, space: str = "", depth: int = 0) -> JsonObject:
        """One element a member, `space` before each, of those that are declared: others have keys that a closing
        tag would have to say again, which no grammar can see to."""
        return in_order(
            members, lambda key, schema: sequence(space, self._element(f"{what}.{key}", key, schema, depth))
        )

    def _element(self, what: str, key: str, schema: object, depth: int) -> JsonObject:
        return sequence(f"{self.tag}{key}>", self._value(what, schema, depth), f"{self.tag}/{key}>")

    def _value(self, what: str, schema: object, depth: int) -> JsonObject:
        types = frozenset(declared_types(schema, self.root))
        found = (way for choice in choices(schema, self.root) for way in self._ways(what, choice, types, depth))
        return one_of(found, what)

    def _ways(self, what: str, choice: Choice, types: frozenset[str], depth: int) -> Iterable[Part]:
        kind = choice.kind
        if kind in ("string", ANY_KIND):
            texts = raw_text(choice, [self.tag])
            return [text for text in texts if not isinstance(text, str) or is_read_as_text(text, types)]
        ways: list[Part] = []
        if kind in ("array", "object") and is_plain(choice, self.root, depth):
            ways += self._nested(what, choice, types, depth + 1)
        if is_read_as_json(kind, types):
            ways.append(raw_json(choice.alone(self.root), [self.tag]))
        return ways

    def _nested(self, what: str, choice: Choice, types: frozenset[str], depth: int) -> Iterable[Part]:
        """Children, where those, or none at all, are read as this kind of value."""
        if choice.kind == "object" and not types & {"array", "string"} and choice.schema.get("properties"):
            yield self.members(what, Members.of(choice.schema), "", depth)
        if choice.kind == "array" and not types & {"object", "string"}:
            item = self._element(f"{what}[]", _ITEM, choice.schema.get("items", {}), depth)
            yield listed(item, "", *bounds(choice.schema, *ITEMS))
