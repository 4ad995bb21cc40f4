"""Arguments by structural tags: whatever a schema says, what may be written is read as what it allows."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from random import Random

import jsonschema
import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.conformance.specimens import asked
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.structural_tag import Demand
from tests.parsers.grammar_walk import Walk

OBJECT = {"type": "object"}
SCHEMAS: dict[str, JsonSchema] = {
    "nothing_said": {},
    "no_type": {"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]},
    "any_object": {**OBJECT},
    "anything": {**OBJECT, "properties": {"a": {}, "b": {"description": "b"}}, "required": ["a", "b"]},
    "map": {**OBJECT, "additionalProperties": {"type": "integer"}},
    "others": {
        **OBJECT,
        "properties": {"id": {"type": "string"}, "ids": {"type": "array"}},
        "required": ["id"],
        "additionalProperties": {"type": "boolean"},
    },
    "unions": {
        **OBJECT,
        "properties": {
            "a": {"type": ["string", "integer"]},
            "b": {"type": ["null", "integer"]},
            "c": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            "d": {"oneOf": [{"type": "object", "properties": {"x": {"type": "integer"}}}, {"type": "boolean"}]},
        },
        "required": ["a", "b", "c", "d"],
    },
    "choices": {
        **OBJECT,
        "properties": {
            "a": {"enum": ["x", "</parameter>", " y ", ""]},
            "b": {"enum": [1, "1", None, True]},
            "c": {"const": 7},
            "d": {"type": "string", "enum": ["true", "null", "12"]},
            "e": {"enum": [{"pattern": "<b>", "minLength": 1}]},
        },
        "required": ["a", "b", "c", "d", "e"],
    },
    "texts": {
        **OBJECT,
        "properties": {
            "a": {"type": "string", "pattern": "^[ -~]{1,9}$"},
            "b": {"type": "string", "minLength": 2, "maxLength": 5},
            "c": {"type": "string", "pattern": "^https?://\\S+$"},
            "d": {"type": "string", "format": "date"},
        },
        "required": ["a", "b", "c", "d"],
    },
    "texts_within": {
        **OBJECT,
        "properties": {
            "a": {"type": "array", "items": {"type": "string", "minLength": 2}, "minItems": 1},
            "b": {**OBJECT, "properties": {"c": {"type": "string", "pattern": "^.{2,4}$"}}, "required": ["c"]},
        },
        "required": ["a", "b"],
    },
    "reference": {
        "$ref": "#/$defs/arguments",
        "$defs": {
            "arguments": {**OBJECT, "properties": {"node": {"$ref": "#/$defs/node"}}, "required": ["node"]},
            "node": {
                **OBJECT,
                "properties": {
                    "name": {"type": "string"},
                    "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["name"],
            },
        },
    },
    "elsewhere": {
        **OBJECT,
        "properties": {
            "from": {**OBJECT, "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            "to": {"$ref": "#/properties/from"},
            "all": {"type": "array", "items": {"$ref": "#/properties/from"}},
        },
        "required": ["to", "all"],
    },
    "together": {
        "allOf": [
            {**OBJECT, "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "boolean"}}, "required": ["b"]},
        ]
    },
    "either": {
        **OBJECT,
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "deep": {
        **OBJECT,
        "properties": {"a": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {
            **OBJECT, "properties": {"b": {"type": "array", "items": {"type": ["integer", "null"]}}}}}}}},
        "required": ["a"],
    },
    "odd_keys": {**OBJECT, "properties": {"größe": {"type": "integer"}, "type": {"type": "string"}}},
}  # fmt: skip
NAMES = ("hermes", "qwen3_coder", "mimo", "glm45", "deepseek_v4", "kimi_k3", "k2_horizon", "hy_v3", "poolside_v1",
         "dots", "beam", "minicpm5", "step3", "minimax_m3", "olmo3", "lfm2", "gemma4", "functiongemma")  # fmt: skip


# The closing tag of an element says its key again, which a grammar can have only of a key that is declared.
FREE = ("nothing_said", "any_object", "map")
CASES = [pytest.param(name, SCHEMAS[schema], id=f"{name}-{schema}") for name in NAMES for schema in SCHEMAS
         if name != "minimax_m3" or schema not in FREE]  # fmt: skip


@pytest.mark.parametrize(("name", "schema"), CASES)
def test_arguments_are_what_the_schema_allows(name: str, schema: JsonSchema) -> None:
    format = registry.select(reasoning_parser=None, tool_parser=name)
    random, ended = Random(3), 0
    demand = Demand(calls="required", tools={"act": schema}, bound=frozenset({"act"}))
    request = replace(asked(format), tools={"act": schema})
    tag = format.structural_tag(demand, request)
    for _ in range(3):
        text = Walk(tag).at_random(random)
        if text is None:
            continue
        ended += 1
        message = read(format, [text], request, whole=True)
        assert message.content is None, text
        assert message.tool_calls, text
        for call in message.tool_calls:
            try:
                jsonschema.validate(json.loads(call.arguments), schema)
            except jsonschema.ValidationError as error:
                pytest.fail(f"{error.message} in {text}")
    assert ended


NODE = {**OBJECT, "properties": {f"p{key}": {"$ref": "#/$defs/node"} for key in range(30)}, "required": ["p0"]}
LAUGHS = {f"a{level}": {"title": "a", "anyOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 10} for level in range(15)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "schema",
    [{**NODE, "$defs": {"node": NODE}}, {**OBJECT, "properties": {"a": LAUGHS["a0"]}, "$defs": LAUGHS}],
    ids=["itself", "laughs"],
)
def test_a_tag_stays_small(name: str, schema: JsonSchema) -> None:
    format = registry.select(reasoning_parser=None, tool_parser=name)
    demand = Demand(calls="required", tools={"act": schema}, bound=frozenset({"act"}))
    with suppress(Inexpressible):
        assert len(json.dumps(format.structural_tag(demand, asked(format)))) < 1_000_000


@pytest.mark.parametrize("way", ["xml_typed", "json"])
@pytest.mark.parametrize("schema", [SCHEMAS["unions"], SCHEMAS["choices"], SCHEMAS["anything"], SCHEMAS["others"]])
def test_calls_are_written_as_the_request_asks(way: str, schema: JsonSchema) -> None:
    format = registry.select(reasoning_parser=None, tool_parser="k2_horizon")
    request = replace(asked(format), tools={"act": schema}, chat_template_kwargs={"tool_call_format": way})
    tag = format.structural_tag(Demand(calls="required", tools={"act": schema}, bound=frozenset({"act"})), request)
    random = Random(9)
    texts = [text for text in (Walk(tag).at_random(random) for _ in range(3)) if text is not None]
    for text in texts:
        message = read(format, [text], request, whole=True)
        assert message.content is None, text
        for call in message.tool_calls:
            jsonschema.validate(json.loads(call.arguments), schema)
    assert texts
