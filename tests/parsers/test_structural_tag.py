"""Structural tags: what they allow is what the same format reads, and what it writes they allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import jsonschema
import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.conformance.specimens import asked
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import Message, ToolCall
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject
from tests.parsers.grammar_walk import Walk, accepts

TOOLS: dict[str, JsonSchema] = {
    "get_tide": {
        "type": "object",
        "properties": {
            "port": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"enum": ["m", "ft"]},
            "exact": {"type": "boolean"},
            "note": {"type": ["string", "null"]},
            "height": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        },
        "required": ["port", "unit"],
    },
    "chart.draw": {
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 8},
            "points": {"type": "array", "items": {"$ref": "#/$defs/point"}, "minItems": 1, "maxItems": 3},
            "style": {
                "type": "object",
                "properties": {"color": {"type": "string", "pattern": "^#[0-9a-f]{3}$"}, "width": {"type": "integer"}},
                "required": ["width"],
            },
        },
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}, "label": {"type": "string"}}}},
    },
    "ping": {"type": "object", "properties": {}},
}
BOUND = frozenset(TOOLS)


def _formats() -> Iterator[Format]:
    for _, family in registry.families():
        yield from (format for format in family if format.tool_names)


FORMATS = [pytest.param(format, id=format.name) for format in _formats()]
EACH = pytest.mark.parametrize("format", FORMATS)


def _request(tools: dict[str, JsonSchema] = TOOLS, **more: object) -> Request:
    return replace(Request(tools=tools, parse_calls=True), **more)  # type: ignore[arg-type]


def _tag(format: Format, calls: str = "required", **more: object) -> JsonObject:
    demand: dict[str, object] = {"tools": TOOLS, "bound": BOUND, **more}
    demand.setdefault("bound", BOUND)
    return format.structural_tag(Demand(calls=calls, **demand), _request())  # type: ignore[arg-type]


def _thinking(format: Format, request: Request) -> str:
    return format.reasoning.of(request).write("Hm.", request) if format.reasoning else ""


def _read(format: Format, reply: str) -> Message:
    request = replace(asked(format), tools=TOOLS)
    return read(format, [_thinking(format, request) + reply], request, whole=True)


def _check(message: Message, tools: dict[str, JsonSchema], text: str) -> None:
    for call in message.tool_calls:
        assert call.name in tools, text
        jsonschema.validate(json.loads(call.arguments), tools[call.name])


CALLS = [
    ToolCall("functions.get_tide:0", "get_tide", '{"port": "Saint-Malo", "days": 3, "unit": "m"}'),
    ToolCall("functions.ping:1", "ping", "{}"),
]


def _rendered(format: Format, calls: list[ToolCall]) -> str:
    plain = replace(format, reasoning=None)
    return plain.render(Message(None, None, calls), _request())


def _one(format: Format) -> bool:
    return bool(format.calls and format.calls.calls_in_reply == "one")


@EACH
def test_what_a_format_writes_is_allowed(format: Format) -> None:
    calls = CALLS[:1] if _one(format) else CALLS
    for how in ("required", "auto"):
        assert accepts(_tag(format, how), _rendered(format, calls))
        assert accepts(_tag(format, how, parallel=False), _rendered(format, CALLS[:1]))


@EACH
def test_what_is_no_call_is_refused(format: Format) -> None:
    required = _tag(format)
    good = _rendered(format, CALLS[:1])
    assert not accepts(required, "")
    assert not accepts(required, f"Well. {good}")
    assert not accepts(required, good.replace("get_tide", "get_tides"))
    assert not accepts(required, good.replace("3", "3.5"))
    assert not accepts(required, good.replace("3", "15"))
    assert not accepts(_tag(format, parallel=False), _rendered(format, CALLS if not _one(format) else CALLS[:1]) * (1 + _one(format)))
    assert not accepts(_tag(format, tools={"ping": TOOLS["ping"]}), good)


@EACH
@pytest.mark.parametrize("parallel", [True, False])
def test_what_is_allowed_is_read_as_calls(format: Format, parallel: bool) -> None:
    random, ended = Random(7), 0
    tag = _tag(format, parallel=parallel)
    for _ in range(6):
        text = Walk(tag).at_random(random)
        if text is None:
            continue
        ended += 1
        message = _read(format, text)
        assert message.content is None, text
        assert len(message.tool_calls) == 1 if not parallel else message.tool_calls, text
        _check(message, TOOLS, text)
    assert ended > 3
