"""A place in a tool's JSON schema: what is said there of one value, and of what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from streamsieve.parsers.arguments.schema_types import declared_types, items_of, property_of
from streamsieve.parsers.request import JsonSchema


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
        return SchemaPlace(property_of(self.schema, self.root, key), self.root)

    def item(self) -> SchemaPlace:
        """The place of the value's elements."""
        return SchemaPlace(items_of(self.schema, self.root), self.root)


def parameters_place(parameters: JsonSchema | None) -> SchemaPlace:
    """The place of a call's arguments object, `parameters` being its function's schema, where there is one."""
    return SchemaPlace(parameters or {}, parameters or {})
