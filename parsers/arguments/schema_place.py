"""A place in a tool's JSON schema: what is said there of one value, and of what is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from streamsieve.parsers.arguments.schema_types import declared_types, resolve
from streamsieve.parsers.request import JsonSchema

_DEPTH = 16
"""How deep `anyOf` and `$ref` are followed."""


@dataclass(frozen=True)
class SchemaPlace:
    """What a schema says of one value: `schema`, which may be no schema at all, within `root`."""

    schema: object
    root: JsonSchema

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The JSON types that the value may have, in declared order; empty where it is not declared."""
        return declared_types(self.schema, self.root)

    def member(self, key: str) -> SchemaPlace:
        """The place of the value's member `key`."""
        for schema in _options(self.schema, self.root, _DEPTH):
            members = schema.get("properties")
            if isinstance(members, Mapping) and key in members:
                return SchemaPlace(members[key], self.root)
        others = (schema.get("additionalProperties") for schema in _options(self.schema, self.root, _DEPTH))
        return SchemaPlace(next((other for other in others if isinstance(other, Mapping)), None), self.root)

    def item(self) -> SchemaPlace:
        """The place of the value's elements."""
        items = (schema.get("items") for schema in _options(self.schema, self.root, _DEPTH))
        return SchemaPlace(next((item for item in items if isinstance(item, Mapping)), None), self.root)


def parameters_place(parameters: JsonSchema | None) -> SchemaPlace:
    """The place of a call's arguments object, `parameters` being its function's schema, where there is one."""
    return SchemaPlace(parameters or {}, parameters or {})


def _options(schema: object, root: JsonSchema, depth: int) -> Iterator[Mapping[str, object]]:
    """`schema` and all that it refers to or chooses from."""
    if not isinstance(schema, Mapping) or depth == 0:
        return
    yield schema
    if isinstance(schema.get("$ref"), str):
        yield from _options(resolve(schema["$ref"], root), root, depth - 1)
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema[key] if isinstance(schema.get(key), list) else ():
            yield from _options(option, root, depth - 1)
