"""Calls as JSON: the schema that upstreams are given, and the reading of such replies."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.structural_tag import Demand
from streamsieve.wire.request.call_schema import call_schema, reading

PORT = {
    "type": "object",
    "properties": {"port": {"$ref": "#/$defs/port"}, "near": {"$ref": "#/$defs/port/properties/name"}},
    "required": ["port"],
    "additionalProperties": False,
    "$defs": {"port": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
}
TREE = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "value": {"type": "integer"}},
    "additionalProperties": False,
}
ODD = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/x~1y"}, "b": {"$ref": "#/$defs/none/x"}},
    "required": ["a"],
    "$defs": {"x/y": {"type": "integer"}, "none": {"x": True}},
}
UNTYPED = {"properties": {"a": {"type": "string"}}}
INNER = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}, "required": ["b"]}
TOOLS: dict[str, Any] = {"tide": PORT, "tree": TREE, "ping": {}, "inner": INNER, "o/d": ODD, "untyped": UNTYPED}
ANSWER = {"type": "object", "properties": {"high": {"$ref": "#/definitions/flag"}}, "required": ["high"],
          "definitions": {"flag": {"type": "boolean"}}}  # fmt: skip


def demand(*names: str, **more: Any) -> Demand:
    tools = {name: TOOLS[name] for name in names or TOOLS}
    return Demand(**{"calls": "required", "tools": tools, "bound": frozenset(tools), **more})


def call(name: str, parameters: object) -> dict[str, Any]:
    return {"name": name, "parameters": parameters}


# demand, value, whether it is of the schema
VALUES: list[tuple[Demand, Any, bool]] = [
    (demand(), [call("tide", {"port": {"name": "Brest"}, "near": "Bodø"})], True),
    (demand(), [call("tide", {"port": {}})], False),
    (demand(), [call("tide", {"port": {"name": "Brest"}, "near": 7})], False),
    (demand(), [call("tree", {"left": {"left": {"value": 1}}})], True),
    (demand(), [call("tree", {"left": {"left": {"value": "1"}}})], False),
    (demand(), [call("ping", {"any": [1]})], True),
    (demand(), [call("ping", 7)], False),
    (demand(), [call("inner", {"b": "x"})], True),
    (demand(), [call("inner", {"b": 1})], False),
    (demand(), [call("o/d", {"a": 1, "b": 2})], True),
    (demand(), [call("o/d", {"a": "1"})], False),
    (demand("o/d", parallel=False), {"a": 1}, True),
    (demand("o/d", parallel=False), {"a": "1"}, False),
    (demand(), [call("untyped", 7)], False),
    (demand("untyped", parallel=False), {"a": "x"}, True),
    (demand("untyped", parallel=False), 7, False),
    (demand(), [call("pong", {})], False),
    (demand(), [call("ping", {}), call("tree", {})], True),
    (demand(), [], False),
    (demand(), call("ping", {}), False),
    (demand(parallel=False), [call("ping", {}), call("tree", {})], False),
    (demand(bound=frozenset({"ping"})), [call("tide", {"port": 7})], True),
    (demand("tide", parallel=False), {"port": {"name": "Brest"}}, True),
    (demand("tide", parallel=False), {"port": {}}, False),
    (demand("tide", parallel=False), [call("tide", {"port": {"name": "Brest"}})], False),
    (demand("tree", parallel=False), {"left": {"value": 1}}, True),
    (demand("tree", parallel=False), {"left": {"value": "1"}}, False),
    (demand(calls="auto", response=ANSWER), [call("ping", {})], True),
    (demand(calls="auto", response=ANSWER), {"high": True}, True),
    (demand(calls="auto", response=ANSWER), {"high": 1}, False),
    (demand("ping", calls="auto", parallel=False, response=ANSWER), {"any": 1}, False),
]


@pytest.mark.parametrize(("demand", "value", "valid"), VALUES)
def test_schema(demand: Demand, value: Any, valid: bool) -> None:
    schema = json.loads(json.dumps(call_schema(demand)))  # as it is sent
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(value) == valid


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "a(b", "</tool_call>", "{x}"])
@pytest.mark.parametrize("parallel", [True, False])
def test_a_name_that_no_call_can_have(name: str, parallel: bool) -> None:
    with pytest.raises(Inexpressible, match="is not a name"):
        call_schema(Demand(calls="required", tools={name: {}}, bound=frozenset(), parallel=parallel))


# parsers, demand, reply, reasoning, content, calls
PING = ("ping", "{}")
ONE = '[{"name": "ping", "parameters": {}}]'
TWO = ' [ {"name":"ping","parameters":{}},\n{"name":"tree","parameters":{}} ]\n'
BARE, EITHER = demand("tide", parallel=False), demand(calls="auto", response=ANSWER)
READ: list[tuple[tuple[str | None, str], Demand, str, str | None, str | None, list[tuple[str, str]]]] = [
    ((None, "hermes"), demand(), ONE, None, None, [PING]),
    ((None, "hermes"), demand(), TWO, None, None, [PING, ("tree", "{}")]),
    ((None, "hermes"), demand(), f"{ONE}<|im_end|>", None, None, [PING]),
    (("qwen3", "hermes"), demand(), f"Hm.</think>\n\n{ONE}", "Hm.", None, [PING]),
    ((None, "hermes"), demand(), '<tool_call>{"name": "ping"}', None, '<tool_call>{"name": "ping"}', []),
    ((None, "hermes"), BARE, '{"port": {"name": "é"}}', None, None, [("tide", '{"port": {"name": "é"}}')]),
    (("qwen3", "hermes"), BARE, "Hm.</think> {}", "Hm.", None, [("tide", "{}")]),
    (("openai_gptoss", "openai"), BARE, '{"a": 1}<|return|>', None, None, [("tide", '{"a": 1}')]),
    ((None, "hermes"), EITHER, ONE, None, None, [PING]),
    ((None, "hermes"), EITHER, '{"high": true}', None, '{"high": true}', []),
    ((None, "hermes"), EITHER, '[1, {"name": 2}]', None, '[1, {"name": 2}]', []),
]


@pytest.mark.parametrize(("parsers", "demand", "text", "reasoning", "content", "calls"), READ)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_reading(
    parsers: tuple[str | None, str],
    demand: Demand,
    text: str,
    reasoning: str | None,
    content: str | None,
    calls: list[tuple[str, str]],
    size: int,
) -> None:
    format = registry.select(reasoning_parser=parsers[0], tool_parser=parsers[1])
    assert format is not None
    request = Request(tools=demand.tools, parse_calls=True)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    message = read(reading(format, demand), pieces, request, "stop")
    assert (message.reasoning, message.content) == (reasoning, content)
    assert [(call.name, call.arguments) for call in message.tool_calls] == calls


def test_a_cut_call_keeps_what_came() -> None:
    format = registry.select(reasoning_parser=None, tool_parser="hermes")
    assert format is not None
    request = Request(tools=TOOLS, parse_calls=True)
    message = read(reading(format, demand("tide", parallel=False)), ['{"port": {"na'], request, "length")
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("tide", '{"port": {"na')]
