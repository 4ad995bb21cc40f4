"""Structural tags: what they allow is what the same format reads, and what it writes they allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, Literal

import jsonschema
import pytest
import xgrammar

from streamsieve.parsers import registry
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.conformance.specimens import asked
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.format import Format
from streamsieve.parsers.formats import response_template
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
REQUEST = Request(tools=TOOLS, parse_calls=True)


def _formats() -> Iterator[Format]:
    for _, family in registry.families():
        yield from (format for format in family if format.tool_names)


FORMATS = [pytest.param(format, id=format.name) for format in _formats()]
EACH = pytest.mark.parametrize("format", FORMATS)


def _tag(format: Format, calls: Literal["none", "auto", "required"] = "required", **more: Any) -> JsonObject:
    demand = replace(Demand(calls=calls, tools=TOOLS, bound=frozenset(TOOLS)), **more)
    return format.structural_tag(demand, REQUEST)


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
    return plain.render(Message(None, None, calls), REQUEST)


def _one(format: Format) -> bool:
    return bool(format.calls and format.calls.calls_in_reply == "one")


def test_every_tool_parser_but_the_template_can_be_enforced() -> None:
    names = {name for format in _formats() for name in format.tool_names}
    assert names | {"hf"} == {entry["name"] for entry in registry.listing()["tool"]}
    template = {
        "fields": {"content": {"content": "text"}, "tool_calls": {"open": "<c>", "close": "</c>", "content": "json"}}
    }
    format = response_template.templated(response_template.HF, template, "tool")
    assert format
    with pytest.raises(Inexpressible, match="not how it is written"):
        _tag(format)


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
    assert not accepts(
        _tag(format, parallel=False), _rendered(format, CALLS if not _one(format) else CALLS[:1]) * (1 + _one(format))
    )
    assert not accepts(_tag(format, tools={"ping": TOOLS["ping"]}), good)


@EACH
@pytest.mark.parametrize("parallel", [True, False])
def test_what_is_allowed_is_read_as_calls(format: Format, parallel: bool) -> None:
    random, ended = Random(7), 0
    tag = _tag(format, parallel=parallel)
    for _ in range(4):
        text = Walk(tag).at_random(random)
        if text is None:
            continue
        ended += 1
        message = _read(format, text)
        assert message.content is None, text
        assert len(message.tool_calls) == 1 if not parallel else message.tool_calls, text
        _check(message, TOOLS, text)
    assert ended > 1


@EACH
@pytest.mark.parametrize("parallel", [True, False])
def test_calls_in_text_are_bound_too(format: Format, parallel: bool) -> None:
    random, tag, found = Random(5), _tag(format, "auto", parallel=parallel), 0
    for _ in range(4):
        walk = Walk(tag)
        walk.write(random.choice(["Well.\n", "["]))
        if random.random() < 0.8:
            good = _rendered(format, CALLS[:1])
            walk.write(good[: random.randint(1, len(good))])
        text = walk.at_random(random)
        if text is not None:
            message = _read(format, text)
            _check(message, TOOLS, text)
            found += len(message.tool_calls)
            assert parallel or len(message.tool_calls) < 2, text
    assert found


@EACH
def test_text_is_free_where_calls_may_be(format: Format) -> None:
    if format.messages:
        text = replace(format, reasoning=None).render(Message(None, "Low at 6:12.", []), REQUEST)
    else:
        text = "Low at 6:12."
    assert accepts(_tag(format, "auto"), text)
    assert accepts(_tag(format, "auto", parallel=False), text)
    assert not accepts(_tag(format, response={"type": "object"}), text)


@EACH
def test_an_answer_may_have_a_schema(format: Format) -> None:
    random, schema = Random(2), {"type": "object", "properties": {"low": {"type": "integer"}}, "required": ["low"]}
    for calls in ("none", "auto"):
        tag = _tag(format, calls, response=schema)
        for text in filter(None, (Walk(tag).at_random(random) for _ in range(4))):
            message = _read(format, text)
            _check(message, TOOLS, text)
            if not message.tool_calls:
                jsonschema.validate(json.loads(message.content or ""), schema)
            assert not message.tool_calls or (calls == "auto" and message.content is None), text


ENDED_BY_CALLS = [
    pytest.param(one, one.calls, id=one.name)
    for one in _formats()
    if one.reasoning and one.reasoning.ends_at_call and one.calls
]


@pytest.mark.parametrize(("format", "syntax"), ENDED_BY_CALLS)
def test_an_opener_that_ended_the_thinking_is_not_written_again(format: Format, syntax: CallSyntax) -> None:
    good = _rendered(format, CALLS)
    enders = syntax.thinking_enders or [group for group, _ in syntax.groups] or syntax.openers
    opener = next(one for one in enders if good.startswith(one))
    for calls in ("required", "auto"):
        tag = _tag(format, calls, opener=opener)
        assert accepts(tag, good.removeprefix(opener))
        assert not accepts(tag, "")
    assert accepts(tag, f"{good.removeprefix(opener)} That is all.")
    with pytest.raises(Inexpressible, match="opens no call"):
        _tag(format, opener="<nothing>")


@EACH
def test_white_space_ends(format: Format) -> None:
    tools: dict[str, JsonSchema] = {
        "ping": {"type": "object", "properties": {}},
        "act": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
    }
    for name, schema in tools.items():
        tag = _tag(format, tools={name: schema}, bound=frozenset(tools), parallel=False)
        walk = Walk(tag)
        if format.messages:  # whose thinking may go on as long as it likes
            walk.write(f"{_rendered(format, [ToolCall('', name, '{}')]).partition(name)[0]}{name}")
        for _ in range(500):
            if not any(walk.write(space) for space in "\t \n") and not walk.forced():
                break
        assert walk.may_end, walk.text
        assert _read(format, walk.text).tool_calls, walk.text


def test_tools_that_are_not_bound_may_have_any_object() -> None:
    format = registry.select(reasoning_parser=None, tool_parser="hermes")
    tag = _tag(format, bound=frozenset({"ping"}))
    assert accepts(tag, _rendered(format, [ToolCall("", "get_tide", '{"harbour": [1]}')]))
    assert not accepts(tag, _rendered(format, [ToolCall("", "ping", '{"harbour": [1]}')]))


@pytest.mark.parametrize(("names", "tools", "what"), [
    ("pythonic", {"get-tide": {}}, "'get-tide'"),
    ("pythonic", {"act": {"type": "object", "properties": {"a-b": {}}}}, "'a-b'"),
    ("hermes", {"two words": {}}, "'two words'"),
    ("mimo", {"act": {"properties": {"a>b": {}}}}, "'a>b'"),
    ("deepseek_v4", {"act": {"properties": {'a"b': {}}}}, "a\"b"),
    ("hermes", {"act": {"type": "string"}}, "allows no object"),
    ("hermes", {}, "no tool"),
    ("qwen3_coder", {"act": {"properties": {"a": {"pattern": "<b>"}}}}, "'<'"),
    ("mimo", {"act": {"properties": {"a": {"enum": ["</parameter>"]}}}}, "act.a"),
])  # fmt: skip
def test_what_cannot_be_said_is_named(names: str, tools: dict[str, JsonSchema], what: str) -> None:
    format = registry.select(reasoning_parser=None, tool_parser=names)
    with pytest.raises(Inexpressible, match=what):
        _tag(format, tools=tools, bound=frozenset(tools))


@pytest.mark.parametrize(("model", "name", "lead", "old", "new"), [
    ("llama", "llama3_json", "", "\n", ""),
    ("kimi", "kimi_k2", "", "", ""),
    ("deepseek_r1", "deepseek_v3", "", "", ""),
    ("deepseek_v3_1", "deepseek_v31", "", "", ""),
    ("deepseek_v3_2", "deepseek_v32", "\n\n", "", ""),
    ("deepseek_v4", "deepseek_v4", "\n\n", "", ""),
    ("deepseek_v4_1", "deepseek_v41", "\n\n", "", ""),
    ("qwen_3", "hermes", "", "", ""),
    ("qwen_3_coder", "qwen3_coder", "", "", ""),
    ("harmony", "gpt-oss", "", "get_tide ", "get_tide"),
    ("minimax", "minimax_m2", "\n</think>\n\n\n\n\n", "", ""),
    ("minimax_m3", "minimax_m3", "", "", ""),
    ("glm_4_7", "glm47", "", "\n", ""),
    ("gemma_4", "gemma4", "", "", ""),
    ("mimo", "mimo", "", "\n", ""),
])  # fmt: skip
def test_xgrammars_own_tags_allow_the_same_call(model: str, name: str, lead: str, old: str, new: str) -> None:
    format = registry.select(reasoning_parser=None, tool_parser=name)
    tools = {name: TOOLS[name] for name in ("get_tide", "ping")}
    listed = [{"type": "function", "function": {"name": name, "parameters": tools[name]}} for name in tools]
    theirs = xgrammar.get_model_structural_tag(model, tools=listed, tool_choice="required", reasoning="disabled")
    call = _rendered(format, CALLS[:1]).replace(old, new)
    for text in (call, call.replace("3", "15"), call.replace("get_tide", "get_tides")):
        assert (
            accepts(theirs.model_dump(), f"{lead}{text}") == accepts(_tag(format, tools=tools), text) == (text == call)
        )
