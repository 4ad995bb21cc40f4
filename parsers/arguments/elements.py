"""Nested elements as JSON: text is typed by the schema, children make an object or an array."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.arguments.schema_types import convert, declared_types, items_of, property_of
from streamsieve.parsers.request import JsonSchema

_TEXT_KEY = "$text"
"""Holds the text of an element that has children too."""


@dataclass(slots=True)
class Element:
    """An element as far as it has been read: its text, and those of its children that are complete."""

    key: str
    text: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    def to_json(self, schema: object, root: JsonSchema) -> str:
        """Its value by `schema`, a part of `root`. White space between children is framing."""
        types = frozenset(declared_types(schema, root))
        text = "".join(self.text)
        if not self.children:
            return _empty(types) if not text.strip() and _empty(types) else convert(text, types)
        if "array" in types and "object" not in types and not text.strip():
            items = items_of(schema, root)
            return f"[{', '.join(child.to_json(items, root) for child in self.children)}]"
        return f"{{{self.members(schema, root, text.strip())}}}"

    def members(self, schema: object, root: JsonSchema, text: str = "") -> str:
        """Its children as the members of an object; those of one key are an array under it."""
        values: dict[str, list[str]] = {}
        for child in self.children:
            values.setdefault(child.key, []).append(child.to_json(property_of(schema, root, child.key), root))
        if text:
            values.setdefault(_TEXT_KEY, []).append(f'"{quote(text)}"')
        return ", ".join(f'"{quote(key)}": {_one_or_many(found)}' for key, found in values.items())


def _one_or_many(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"[{', '.join(values)}]"


def _empty(types: frozenset[str]) -> str:
    """What nothing at all is by `types`, where that is no string."""
    if "string" in types:
        return ""
    return "[]" if "array" in types else "{}" if "object" in types else ""
