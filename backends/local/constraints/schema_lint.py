"""What xgrammar passes over in a JSON schema without a word, so that a reply may break it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamsieve.parsers.request import JsonSchema

_DEPTH = 200

ONE = ("not", "if", "contains", "propertyNames", "additionalProperties", "unevaluatedProperties", "items",
        "unevaluatedItems", "contentSchema", "additionalItems", "then", "else")  # fmt: skip
MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Where schemas stand within a schema: one, a list of them, some by name."""

_DESCRIBING = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
                         "$comment", "$schema", "$id", "$defs", "definitions"})  # fmt: skip
_FORMATS = frozenset({"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri",
                      "uri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer"})  # fmt: skip
_OF_TYPE = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems", "contains"),
    "object": ("minProperties", "maxProperties", "patternProperties", "propertyNames"),
}
LOOK_AROUND = re.compile(r"(?<!\\)\(\?(?:[=!]|<[=!])")
_OTHERS = re.compile(r"\[\^(?:\\.|[^\]\\])*\]")
_ESCAPED_IN_JSON = re.compile(r"""["\x00-\x1f]|\\(?:[\\nrtfv0]|c|u00[01]|u0022|u005[cC]|u\{)""")
_MOST_MULTIPLE = 1024


@dataclass(frozen=True, slots=True)
class Ignored:
    """What would not be enforced, in words that hold nothing of the schema, and where (a JSON pointer)."""

    pointer: str
    what: str


def ignored(schema: JsonSchema) -> Iterator[Ignored]:
    """What of `schema` would not be enforced."""
    left: list[tuple[str, object, int]] = [("", schema, 0)]
    while left:
        pointer, here, depth = left.pop()
        if not isinstance(here, Mapping) or depth > _DEPTH:
            continue
        for rule in _RULES if pointer.rpartition("/")[2] != "propertyNames" else _OF_NAMES:
            yield from (Ignored(pointer, what) for what in rule(here))
        left += [(f"{pointer}/{place}", inner, depth + 1) for place, inner in _within(here)]


def breaks_json(pattern: object) -> bool:
    """Whether a pattern asks for a quote, a backslash or a control character, which xgrammar would not escape."""
    return isinstance(pattern, str) and _ESCAPED_IN_JSON.search(_OTHERS.sub("", pattern)) is not None


def is_elsewhere(reference: object) -> bool:
    """Whether a `$ref` points to what the schema does not have by its path."""
    return isinstance(reference, str) and reference != "#" and not reference.startswith("#/")


def _within(schema: JsonSchema) -> Iterator[tuple[str, object]]:
    for key in ONE:
        if key in schema:
            yield key, schema[key]
    for key in MANY:
        inner = schema.get(key)
        for index, one in enumerate(inner if isinstance(inner, list) else ()):
            yield f"{key}/{index}", one
    for key in NAMED:
        named = schema.get(key)
        for name, one in named.items() if isinstance(named, Mapping) else ():
            yield f"{key}/{name.replace('~', '~0').replace('/', '~1')}", one


def _unknown_keywords(schema: JsonSchema) -> Iterator[str]:
    for key in ("not", "if", "dependentRequired", "dependentSchemas", "dependencies", "contentEncoding",
                "contentMediaType", "contentSchema", "$dynamicRef", "$recursiveRef"):  # fmt: skip
        if key in schema:
            yield key
    if schema.get("uniqueItems") is True:
        yield "uniqueItems"


def _combinations(schema: JsonSchema) -> Iterator[str]:
    """Schemas put together, of which only the first kind counts, or one of several."""
    all_of, one_of = schema.get("allOf"), schema.get("oneOf")
    if isinstance(all_of, list) and len(all_of) > 1:
        yield "allOf with more than one schema"
    if isinstance(one_of, list) and len(one_of) > 1 and not _exclude_each_other(one_of):
        yield "oneOf (it counts as anyOf)"
    for key in ("$ref", "const", "enum", "anyOf", "oneOf", "allOf"):
        if key in schema:
            others = sorted(schema.keys() - _DESCRIBING - {key})
            if others and not _is_only_type_of(schema, key, others):
                yield f"what stands beside {key}"
            return


def _exclude_each_other(schemas: Sequence[object]) -> bool:
    """Whether no value is of two of them, as xgrammar sees it: by their types, or by the constants of one property."""
    branches = [one for one in schemas if isinstance(one, Mapping)]
    if len(branches) < len(schemas):
        return False
    types = [one.get("type") for one in branches]
    if len({str(one) for one in types}) == len(types) and all(isinstance(one, str) for one in types):
        return not {"integer", "number"} <= set(types)
    shared = set.intersection(*({*map(str, _required(one))} for one in branches))
    return any(_differs(branches, name) for name in shared)


def _required(schema: JsonSchema) -> Sequence[object]:
    required = schema.get("required")
    return required if isinstance(required, list) else ()


def _differs(branches: Sequence[JsonSchema], name: str) -> bool:
    """Whether the property `name` is another constant, a string, in each."""
    seen: set[object] = set()
    for branch in branches:
        properties = branch.get("properties")
        value = properties.get(name) if isinstance(properties, Mapping) else None
        constant = value.get("const") if isinstance(value, Mapping) else None
        if not isinstance(constant, str) or constant in seen:
            return False
        seen.add(constant)
    return True


def _is_only_type_of(schema: JsonSchema, key: str, others: Sequence[str]) -> bool:
    """Whether all that stands beside an enum or a const is a type that its values have anyway."""
    if key not in ("enum", "const") or list(others) != ["type"]:
        return False
    values = schema[key] if key == "enum" else [schema[key]]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return isinstance(values, list) and all(any(_is_of(value, one) for one in types) for value in values)


def _is_of(value: object, type_name: object) -> bool:
    match type_name:
        case "string":
            return isinstance(value, str)
        case "integer":
            is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return is_whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return False


def _references(schema: JsonSchema) -> Iterator[str]:
    if is_elsewhere(schema.get("$ref")):
        yield "$ref to what is not in the schema by its path"


def _untyped(schema: JsonSchema) -> Iterator[str]:
    if "type" not in schema:
        for type_name, keys in _OF_TYPE.items():
            for key in keys:
                if key in schema:
                    yield f"{key} without type: {type_name}"


def _strings(schema: JsonSchema) -> Iterator[str]:
    pattern, format = schema.get("pattern"), schema.get("format")
    lengths = [key for key in ("minLength", "maxLength") if key in schema]
    is_known = isinstance(format, str) and format in _FORMATS
    if format is not None and not is_known:
        yield "format that xgrammar does not know"
    elif pattern is not None and format is not None:
        yield "pattern beside format"
    if (pattern is not None or is_known) and lengths:
        yield f"{' and '.join(lengths)} beside {'pattern' if pattern is not None else 'format'}"
    if isinstance(pattern, str) and LOOK_AROUND.search(pattern):
        yield "look-around in pattern"
    if breaks_json(pattern):
        yield "pattern with a character that JSON escapes"


def _numbers(schema: JsonSchema) -> Iterator[str]:
    if (multiple := schema.get("multipleOf")) is None:
        return
    types = schema.get("type")
    if types == "number" or (isinstance(types, list) and "number" in types):
        yield "multipleOf of a number"
    elif isinstance(multiple, int | float) and not 0 < multiple <= _MOST_MULTIPLE:
        yield f"multipleOf above {_MOST_MULTIPLE}"
    if schema.keys() & {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}:
        yield "multipleOf beside a minimum or maximum"


def _arrays(schema: JsonSchema) -> Iterator[str]:
    if "contains" in schema and schema.keys() & {"items", "prefixItems"}:
        yield "contains beside items or prefixItems"


def _objects(schema: JsonSchema) -> Iterator[str]:
    properties = schema.get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    undeclared = [one for one in _required(schema) if isinstance(one, str) and one not in declared]
    if undeclared and (declared or "additionalProperties" in schema):
        yield "required of a property that is not in properties"
    patterns = schema.get("patternProperties")
    if isinstance(patterns, Mapping) and any(map(breaks_json, patterns)):
        yield "patternProperties with a character that JSON escapes"
    if declared and "patternProperties" in schema:
        yield "patternProperties beside properties"
    if declared and "propertyNames" in schema:
        yield "propertyNames beside properties"


_RULES: Sequence[Callable[[JsonSchema], Iterator[str]]] = (
    _unknown_keywords, _combinations, _references, _untyped, _strings, _numbers, _arrays, _objects,
)  # fmt: skip
_OF_NAMES = tuple(rule for rule in _RULES if rule is not _untyped)
"""The names of properties are strings anyway."""
