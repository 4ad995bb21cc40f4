"""Values typed by a schema in the order in which it lists its types, as response templates have it."""

from __future__ import annotations

import re

from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.arguments.schema_place import parameters_place
from streamsieve.parsers.arguments.schema_types import convert, json_value
from streamsieve.parsers.request import JsonSchema

_INTEGER = re.compile(r"(?P<digits>[+-]?[0-9]{1,4000})(?:\.0*)?")


def types_in_order(parameters: JsonSchema | None, key: str) -> frozenset[str]:
    """The types of the parameter `key` that are no string, in declared order, as one word: a set keeps none.

    Where there is no such type the value is a string.
    """
    types = parameters_place(parameters).member(key).types
    return frozenset({" ".join(kind for kind in types if kind != "string") or "string"})


def cast_in_order(text: str, types: frozenset[str]) -> str:
    """`text` as the JSON text of the first type that it fits; `types` is what `types_in_order` gives."""
    return cast(text, " ".join(types).split())


def cast(text: str, types: list[str] | tuple[str, ...]) -> str:
    """`text` as the JSON text of the first of `types` that it fits and that is no string, else as a string."""
    word = text.strip()
    for kind in types:
        if (json := _cast(word, kind)) is not None:
            return json
    return f'"{quote(text)}"'


def _cast(word: str, kind: str) -> str | None:
    """`word` as JSON text of type `kind`, or None where it is none."""
    match kind:
        case "integer":
            found = _INTEGER.fullmatch(word)
            return convert(found["digits"], frozenset({kind})) if found else None
        case "null":
            return "null" if word in ("null", "None") else None
        case "number" | "boolean":
            json = convert(word, frozenset({kind}))
            return None if json.startswith('"') else json
        case "object" | "array":
            return json_value(word) if word.startswith("{" if kind == "object" else "[") else None
        case _:
            return None
