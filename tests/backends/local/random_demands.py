"""JSON schemas and tool sets made at random, of what constraints promise to hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

Schema = dict[str, object]

_WORDS = ("city", "days", "unit", "größe", "a b", 'quo"te', "x-y", "n", "値", "back\\slash", "slash/", "type")
_VALUES: tuple[object, ...] = (
    "celsius", "", 'with "quotes"', "a\\b", "é 値 😀", "tab\there", "<tool_call>", "</think>",
    0, -7, 2.5, True, False, None, [], [1, "a"], {}, {"k": [None]},
)  # fmt: skip
_NAMES = ("get_weather", "ping", "do-it", "a", "search_the_web", "Tool9", "x_y_z")
_PATTERNS = ("^[a-z]{2,5}$", "^\\d{4}-\\d{2}$", "^(yes|no|maybe)$", "^[^x]{0,4}$", "^é+$", "^\\w+@\\w+$")
_FORMATS = ("date", "time", "uuid", "ipv4", "email", "date-time")
_DEPTH = 3


def random_schema(random: Random, depth: int = 0) -> Schema:
    """A schema of any type; of an object at the top, as requests have it."""
    kinds: list[Callable[[Random, int], Schema]] = [_string, _integer, _number, _boolean, _enum, _const]
    if depth == 0:
        return _object(random, depth)
    if depth < _DEPTH:
        kinds += [_object, _array, _any_of, _nullable]
    return random.choice(kinds)(random, depth)


def random_tools(random: Random) -> list[dict[str, object]]:
    """One to four tools, some without arguments."""
    names = random.sample(_NAMES, random.randint(1, 4))
    return [{"type": "function", "function": _function(random, name)} for name in names]


def _function(random: Random, name: str) -> dict[str, object]:
    match random.randint(0, 6):
        case 0:
            return {"name": name}
        case 1:
            return {"name": name, "parameters": {"type": "object", "properties": {}}}
        case _:
            return {"name": name, "parameters": random_schema(random), "strict": True}


def _object(random: Random, depth: int) -> Schema:
    names = random.sample(_WORDS, random.randint(0 if depth else 1, 4 if depth < 2 else 2))
    schema: Schema = {
        "type": "object",
        "properties": {name: random_schema(random, depth + 1) for name in names},
        "required": [name for name in names if random.random() < 0.7],
        "additionalProperties": False,
    }
    if depth == 0 and random.random() < 0.15:  # a list of such objects, one within another
        schema["properties"] = {**_properties(schema), "inner": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}
    return schema


def _properties(schema: Mapping[str, object]) -> dict[str, object]:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return properties


def _array(random: Random, depth: int) -> Schema:
    least = random.randint(0, 2)
    return {"type": "array", "items": random_schema(random, depth + 1), "minItems": least,
            "maxItems": least + random.randint(0, 2)}  # fmt: skip


def _any_of(random: Random, depth: int) -> Schema:
    return {"anyOf": [random_schema(random, depth + 1) for _ in range(random.randint(1, 3))]}


def _nullable(random: Random, depth: int) -> Schema:
    return {"type": [random.choice(("integer", "boolean")), "null"]}


def _string(random: Random, depth: int) -> Schema:
    match random.randint(0, 4):
        case 0:
            return {"type": "string", "pattern": random.choice(_PATTERNS)}
        case 1:
            return {"type": "string", "format": random.choice(_FORMATS)}
        case 2:
            least = random.randint(0, 4)
            return {"type": "string", "minLength": least, "maxLength": least + random.randint(0, 20)}
        case 3:
            return {"type": "string", "maxLength": random.randint(0, 30)}
        case _:
            return {"type": "string"}


def _integer(random: Random, depth: int) -> Schema:
    least = random.randint(-1000, 1000)
    bounds: list[Schema] = [
        {},
        {"minimum": least, "maximum": least + random.randint(0, 500)},
        {"exclusiveMinimum": least},
        {"multipleOf": random.randint(2, 9)},
    ]
    return {"type": "integer", **random.choice(bounds)}


def _number(random: Random, depth: int) -> Schema:
    least = random.randint(-50, 50)
    return {"type": "number", **random.choice([{}, {"minimum": least, "maximum": least + 10}])}


def _boolean(random: Random, depth: int) -> Schema:
    return {"type": "boolean"}


def _enum(random: Random, depth: int) -> Schema:
    return {"enum": random.sample(_VALUES, random.randint(1, 4))}


def _const(random: Random, depth: int) -> Schema:
    return {"const": random.choice(_VALUES)}
