"""Types of tagged values by the tool's JSON schema (contract, "How arguments are read")."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.request import JsonSchema

_DEPTH = 16
"""How deep `anyOf` and `$ref` are followed; deeper, or round in a circle, nothing more is learnt."""
_NESTING = 200
"""How deep a value may nest to be read as JSON: what Python's own reader takes depends on its stack."""
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", dict: "object",
              list: "array"}  # fmt: skip
"""What JSON Schema calls the types that Python's own reader of JSON makes."""


def parameter_types(parameters: JsonSchema | None, key: str) -> frozenset[str]:
    """The JSON types that `parameters`, a function's schema, allows for `key`; empty where it does not say."""
    root = parameters or {}
    return frozenset(declared_types(property_of(root, root, key), root))


def property_of(schema: object, root: JsonSchema, key: str) -> object:
    """The schema that an object's `schema`, within `root`, has for `key`, else for what it does not name, or None."""
    objects = list(_variants(schema, root, set(), _DEPTH))
    listed = (one.get("properties") for one in objects)
    others = (one.get("additionalProperties") for one in objects)
    named = next((found[key] for found in listed if isinstance(found, Mapping) and key in found), None)
    return next((one for one in others if isinstance(one, Mapping)), None) if named is None else named


def items_of(schema: object, root: JsonSchema) -> object:
    """The schema that an array's `schema`, within `root`, has for its elements, or None."""
    items = (one.get("items") for one in _variants(schema, root, set(), _DEPTH))
    return next((one for one in items if isinstance(one, Mapping)), None)


def _variants(schema: object, root: JsonSchema, seen: set[str], depth: int) -> Iterator[JsonSchema]:
    """A schema, then those that it refers to or is made of."""
    if not isinstance(schema, Mapping) or depth == 0:
        return
    yield schema
    for part in _parts(schema, root, seen):
        yield from _variants(part, root, seen, depth - 1)


def _parts(schema: JsonSchema, root: JsonSchema, seen: set[str]) -> Iterator[object]:
    """What a schema refers to or is made of; a reference in `seen` is not followed again."""
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        yield from options if isinstance(options, list) else ()
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        yield resolve(reference, root)


def declared_types(schema: object, root: JsonSchema) -> tuple[str, ...]:
    """The JSON types that `schema` allows, in the order in which it lists them; `$ref` is looked up in `root`."""
    return tuple(_types(schema, root, set(), _DEPTH))


def _types(schema: object, root: JsonSchema, seen: set[str], depth: int) -> dict[str, None]:
    """A dictionary for its keys: a set that keeps its order."""
    if not isinstance(schema, Mapping) or depth == 0:
        return {}
    found: dict[str, None] = {}
    declared = schema.get("type")
    listed = declared if isinstance(declared, list) else [declared]
    found |= dict.fromkeys(one for one in listed if isinstance(one, str))
    if not found:
        values = schema.get("enum") if isinstance(schema.get("enum"), list) else []
        values = [*(values or []), *([schema["const"]] if "const" in schema else [])]
        found |= dict.fromkeys(JSON_TYPES[type(value)] for value in values if type(value) in JSON_TYPES)
    for part in _parts(schema, root, seen):
        found |= _types(part, root, seen, depth - 1)
    if not found:
        found |= dict.fromkeys(kind for key, kind in (("properties", "object"), ("items", "array")) if key in schema)
    if found and schema.get("nullable") is True:
        found["null"] = None
    return found


def resolve(reference: str, root: JsonSchema) -> object:
    """What a `$ref` within the same schema points at, or None."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    place: object = root
    for step in reference.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")  # RFC 6901, as a fragment
        place = place.get(name) if isinstance(place, Mapping) else None
    return place


def is_plain_string(types: frozenset[str]) -> bool:
    """Whether a value of these types is a string whatever its text is, and so may stream."""
    return types <= {"string"}


def convert(text: str, types: frozenset[str]) -> str:
    """`text` as the JSON text of the first type that it fits, else as a string.

    Tried in the order null, integer, number, boolean, object, array; a string is what is left.
    """
    word = text.strip()
    if "null" in types and word.lower() == "null":
        return "null"
    if "integer" in types and _INTEGER.fullmatch(word):
        return str(int(word))
    if "number" in types and (number := _number(word)) is not None:
        return number
    if "boolean" in types:
        digits = {} if types & {"integer", "number"} else {"1": "true", "0": "false"}
        if (boolean := {"true": "true", "false": "false", **digits}.get(word.lower())) is not None:
            return boolean
    for kind, opener in (("object", "{"), ("array", "[")):
        if kind in types and word.startswith(opener) and (value := json_value(word)) is not None:
            return value
    return f'"{quote(text)}"'


JSON = frozenset({"any JSON"})
"""The types, none of JSON Schema's own, of a value that is whatever JSON its text is."""


def convert_or_json(text: str, types: frozenset[str]) -> str:
    """As `convert`; and where nothing fits and no string is meant, whatever JSON the text is, else a string."""
    if not text.strip() or "string" in types:
        return convert(text, types)
    converted = convert(text, types)
    return json_value(text.strip()) or converted if converted.startswith('"') else converted


@dataclass(frozen=True, slots=True)
class Typing:
    """How tagged values get their types: `types` of a schema and a key, and `convert` of text and types."""

    types: Callable[[JsonSchema | None, str], frozenset[str]] = parameter_types
    convert: Callable[[str, frozenset[str]], str] = convert


BY_SCHEMA = Typing()


def _number(word: str) -> str | None:
    if _JSON_NUMBER.fullmatch(word):
        return word
    if _INTEGER.fullmatch(word):
        return str(int(word))
    return repr(float(word)) if _FLOAT.fullmatch(word) and abs(float(word)) != float("inf") else None


def json_value(text: str) -> str | None:
    """`text` read as strict JSON and written with `", "` and `": "`; None where it is none, or nested too deep."""
    if _nesting(text) > _NESTING:
        return None
    try:
        return write_json(json.loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def _nesting(text: str) -> int:
    """How deep the brackets of `text` nest, strings left out."""
    deepest = depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += (bracket in "[{") - (bracket in "]}")
        deepest = max(deepest, depth)
    return deepest


def write_json(value: object) -> str:
    """`value` as JSON text, non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _refuse(name: str) -> object:
    raise ValueError(name)
