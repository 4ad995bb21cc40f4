"""Types of tagged values by JSON schemas of every shape (contract, "How arguments are read")."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from streamsieve.parsers.arguments.elements import Element
from streamsieve.parsers.arguments.schema_place import parameters_place
from streamsieve.parsers.arguments.schema_types import convert, parameter_types

PARAMETERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"properties": {"x": {"type": "integer"}}}, {"integer"}),
    ({"properties": {"x": {"type": ["string", "null"]}}}, {"string", "null"}),
    ({"properties": {"x": {"enum": [1, "a", None]}}}, {"integer", "string", "null"}),
    ({"properties": {"x": {"const": True}}}, {"boolean"}),
    ({"properties": {"x": {"anyOf": [{"type": "number"}, {"type": "null"}]}}}, {"number", "null"}),
    ({"properties": {"x": {"type": "string", "nullable": True}}}, {"string", "null"}),
    ({"properties": {"x": {"items": {}}}}, {"array"}),
    ({"properties": {"x": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "number"}}}, {"number"}),
    ({"properties": {"x": {"$ref": "#/$defs/a~1b%20c"}}, "$defs": {"a/b c": {"type": "object"}}}, {"object"}),
    ({"$ref": "#/$defs/P", "$defs": {"P": {"properties": {"x": {"type": "boolean"}}}}}, {"boolean"}),
    ({"allOf": [{"required": ["x"]}, {"properties": {"x": {"type": "array"}}}]}, {"array"}),
    ({"properties": {"x": {"$ref": "#/properties/x"}}}, set()),
    ({"$ref": "#"}, set()),
    ({"properties": {"x": {"$ref": "https://elsewhere"}}}, set()),
    ({"properties": {"x": "no schema"}}, set()),
    ({"properties": []}, set()),
    ({}, set()),
]


@pytest.mark.parametrize(("parameters", "types"), PARAMETERS)
def test_types_of_a_parameter(parameters: dict[str, Any], types: set[str]) -> None:
    assert parameter_types(parameters, "x") == types


def test_references_in_a_circle_cost_nothing() -> None:
    """Each is followed once, however many lead to it."""
    circle = {"anyOf": [{"$ref": "#/$defs/J"}] * 50}
    start = time.perf_counter()
    assert parameter_types({"properties": {"x": {"$ref": "#/$defs/J"}}, "$defs": {"J": circle}}, "x") == set()
    place = parameters_place(circle | {"$defs": {"J": circle}})
    assert (place.member("x").types, place.item().types) == ((), ())
    assert Element("", children=[Element("x")]).to_json(place.schema, place.root) == '{"x": ""}'
    assert time.perf_counter() - start < 5  # without, it would take longer than the universe has


VALUES = [
    (" 7 ", {"integer"}, "7"),
    ("+7", {"integer"}, "7"),
    ("007", {"integer"}, "7"),
    ("7.0", {"integer"}, '"7.0"'),
    ("7", {"number"}, "7"),
    (".5", {"number"}, "0.5"),
    ("1e400", {"number"}, "1e400"),
    ("NaN", {"number"}, '"NaN"'),
    ("TRUE", {"boolean"}, "true"),
    ("0", {"boolean"}, "false"),
    ("0", {"boolean", "integer"}, "0"),
    ("Null", {"null", "string"}, "null"),
    ("null", {"string"}, '"null"'),
    ('{"a": [1,2]}', {"object"}, '{"a": [1, 2]}'),
    ('{"a": [1,2]}', {"array"}, '"{\\"a\\": [1,2]}"'),
    ("[1, NaN]", {"array"}, '"[1, NaN]"'),
    ("{'a': 1}", {"object", "string"}, "\"{'a': 1}\""),
    ("", {"integer"}, '""'),
]


@pytest.mark.parametrize(("text", "types", "json"), VALUES)
def test_values(text: str, types: set[str], json: str) -> None:
    assert convert(text, frozenset(types)) == json


@pytest.mark.parametrize(("depth", "is_array"), [(200, True), (201, False), (100_000, False)])
def test_depth_is_a_fixed_limit(depth: int, is_array: bool) -> None:
    """Not the interpreter's, which depends on where it stands."""
    text = "[" * depth + "]" * depth

    def below(frames: int) -> str:
        return below(frames - 1) if frames else convert(text, frozenset({"array"}))

    for frames in (0, min(sys.getrecursionlimit() // 2, 400)):
        assert below(frames).startswith("[") is is_array
