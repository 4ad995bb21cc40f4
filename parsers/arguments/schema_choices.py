"""A JSON schema taken apart into what one value may be: one kind each, references followed, alternatives apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from streamsieve.parsers.arguments.schema_types import JSON_TYPES, resolve
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import JsonSchema

_DEPTH = 16
"""How deep references and alternatives are followed; deeper, or round in a circle, a choice is not taken apart."""
_SCHEMAS = 1000
"""How many alternatives, taken apart, one value may have."""
_NESTING = 2
_LEAVES = 100
"""How deep containers are taken apart, and how many values there may be in one."""
_UNTOLD = frozenset({"prefixItems", "contains", "uniqueItems", "patternProperties", "minProperties", "maxProperties"})
"""What only JSON's grammar looks at."""
ANY_KIND = ""
_ROOT = "whole"


@dataclass(frozen=True)
class Choice:
    """One kind of value that a schema allows. `kind`: a JSON type, or empty where the schema does not say.

    `schema`: what is said of it, without references at its top; `values`: the only values it may have, if any.
    """

    kind: str
    schema: JsonSchema
    values: tuple[object, ...] = ()

    def alone(self, root: JsonSchema) -> JsonSchema:
        """What is said of it, within `root`, as a schema of its own."""
        return {"enum": list(self.values)} if self.values else alone(self.schema, root)


@dataclass(frozen=True)
class Members:
    """What an object may hold. `others`: the schema of members that are not declared, None where there may be none."""

    declared: Mapping[str, object] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    others: JsonSchema | None = None

    @classmethod
    def of(cls, schema: JsonSchema) -> Members:
        """The members by an object's own schema; one that declares none and forbids none may hold any."""
        declared = schema.get("properties")
        declared = declared if isinstance(declared, Mapping) else {}
        required = schema.get("required")
        required = (
            frozenset(one for one in required if isinstance(one, str)) if isinstance(required, list) else frozenset()
        )
        others = schema.get("additionalProperties", None if "properties" in schema else True)
        allowed = others if isinstance(others, Mapping) else {} if others is True else None
        return cls({**declared, **{key: {} for key in sorted(required - declared.keys())}}, required, allowed)


def choices(schema: object, root: JsonSchema) -> list[Choice]:
    """What a value of `schema`, a part of `root`, may be. Raises Inexpressible where that is too much."""
    return list(_choices(schema, root, _Path(), _DEPTH))


def argument_objects(schema: JsonSchema) -> list[Members]:
    """What the arguments of a call may be whose parameters have `schema`: the members of each kind of object.

    Raises Inexpressible where it allows no object.
    """
    return list(map(Members.of, argument_schemas(schema)))


def argument_schemas(schema: JsonSchema) -> list[JsonSchema]:
    """The schema of each kind of object that the arguments may be. Raises Inexpressible where there is none."""
    found = [choice.schema for choice in choices(schema, schema) if choice.kind in ("object", ANY_KIND)]
    if not found:
        raise Inexpressible("the schema of the parameters allows no object")
    return found


@dataclass(slots=True)
class _Path:
    """What has been looked at for the choices of one value: the references, and how many schemas."""

    references: set[str] = field(default_factory=set)
    schemas: int = 0


def _choices(schema: object, root: JsonSchema, path: _Path, depth: int) -> Iterator[Choice]:
    """The choices; what a reference that was followed before points at is among them already."""
    path.schemas += 1
    if path.schemas > _SCHEMAS:
        raise Inexpressible(f"more than {_SCHEMAS} alternatives for one value")
    if not isinstance(schema, Mapping) or depth == 0:
        yield from () if schema is False else (Choice(ANY_KIND, {}),)
        return
    if isinstance(reference := schema.get("$ref"), str):
        if reference not in path.references:
            path.references.add(reference)
            yield from _choices(resolve(reference, root), root, path, depth - 1)
        return
    if isinstance(parts := schema.get("allOf"), list):
        yield from _choices(_merged(schema, parts, root, depth), root, path, depth - 1)
        return
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list):
            rest = {name: value for name, value in schema.items() if name != key}
            for option in options:
                both = _merged(rest, [option], root, depth) if rest else option
                yield from _choices(both, root, path, depth - 1)
            return
    yield from _by_type(schema)


def _merged(schema: JsonSchema, parts: list[object], root: JsonSchema, depth: int) -> JsonSchema:
    """A schema and all that its value must be besides, as one: members and what is required of them put together."""
    merged = {name: value for name, value in schema.items() if name != "allOf"}
    for part in parts:
        while isinstance(part, Mapping) and isinstance(part.get("$ref"), str) and depth:
            part, depth = resolve(part["$ref"], root), depth - 1
        if not isinstance(part, Mapping):
            continue
        for name, value in part.items():
            old = merged.get(name)
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                merged[name] = {**old, **value}
            elif name == "required" and isinstance(old, list) and isinstance(value, list):
                merged[name] = [*old, *value]
            else:
                merged[name] = value
    return merged


def _by_type(schema: JsonSchema) -> Iterator[Choice]:
    declared = schema.get("type")
    kinds = [one for one in (declared if isinstance(declared, list) else [declared]) if isinstance(one, str)]
    if schema.get("nullable") is True and kinds:
        kinds.append("null")
    listed = schema.get("enum")
    values = [*listed] if isinstance(listed, list) else [schema["const"]] if "const" in schema else None
    if values is not None:
        for kind in dict.fromkeys(JSON_TYPES.get(type(value), ANY_KIND) for value in values):
            if not kinds or kind in kinds or (kind == "integer" and "number" in kinds):
                yield Choice(kind, schema, tuple(one for one in values if JSON_TYPES.get(type(one)) == kind))
        return
    inferred = [kind for key, kind in (("properties", "object"), ("items", "array")) if key in schema]
    for kind in dict.fromkeys(kinds or inferred[:1] or [ANY_KIND]):
        yield Choice(kind, {**schema, "type": kind} if kind else schema)


def is_plain(choice: Choice, root: JsonSchema, depth: int) -> bool:
    """Whether a container, `depth` deep in an argument, is little enough to be written in a syntax's own way.

    What is more than that, also because a schema refers to itself, is JSON, whose grammar does not grow so.
    """
    if choice.values or depth >= _NESTING or not _UNTOLD.isdisjoint(choice.schema):
        return False
    return next(islice(_leaves(choice, root, depth), _LEAVES, None), None) is None


def _leaves(choice: Choice, root: JsonSchema, depth: int) -> Iterator[Choice]:
    """The values within a container, those that would be JSON not taken apart."""
    within = [choice.schema.get("items")] if choice.kind == "array" else Members.of(choice.schema).declared.values()
    for part in within:
        for one in choices(part, root):
            if one.kind in ("array", "object") and depth + 1 < _NESTING:
                yield from _leaves(one, root, depth + 1)
            else:
                yield one


def alone(schema: object, root: JsonSchema) -> JsonSchema:
    """`schema`, a part of `root`, as a schema of its own: the whole of `root` comes with it where it refers to that."""
    if not isinstance(schema, Mapping):
        return {}
    moved = _moved(schema)
    return schema if moved == schema else {**moved, "$defs": {_ROOT: _moved(root)}}


def _moved(schema: JsonSchema) -> dict[str, object]:
    """A schema with its references as they are once the root is under `$defs`."""
    return {key: _reference(value) if key == "$ref" else _moved_part(value) for key, value in schema.items()}


def _moved_part(part: object) -> object:
    if isinstance(part, Mapping):
        return _moved(part)
    return [_moved_part(one) for one in part] if isinstance(part, list) else part


def _reference(value: object) -> object:
    return f"#/$defs/{_ROOT}{value[1:]}" if isinstance(value, str) and value.startswith("#") else _moved_part(value)
