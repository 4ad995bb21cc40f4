"""Requests of any shape at all are sent on or refused; nothing that they hold raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

KEYS = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "items",
        "$ref",
        "$defs",
        "enum",
        "anyOf",
        "additionalProperties",
        "a",
        "pattern",
    ]
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-3, 9) | st.sampled_from(["object", "string", "#", "#/$defs/a", "x", ""])
)
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["message", "reasoning", "function_call", "function_call_output", "x", None, 1]),
            "role": st.sampled_from(["user", "assistant", "developer", "tool", 1]),
            **dict.fromkeys(("content", "summary", "output", "call_id", "name", "arguments"), ANYTHING),
        },
    ),
    max_size=3,
)
CHOICES = st.sampled_from(
    ["auto", "required", None, {"type": "function", "function": {"name": "f"}}, {"type": "allowed_tools"}, [1]]
)
PARSERS = [("hermes", "qwen3"), ("qwen3_coder", "qwen3"), ("pythonic", None), ("mistral", "mistral"), ("openai", None)]
SETTINGS = [
    Settings(upstream=upstream, tool_parser=tool, reasoning_parser=reasoning, tool_strict_level="function")
    for tool, reasoning in PARSERS
    for upstream in ("vllm", "llama.cpp", "openai")
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SETTINGS), CHOICES, ANYTHING, ANYTHING, ANYTHING)
def test_any_request(options: Settings, choice: Any, parameters: Any, answer: Any, other: Any) -> None:
    body = {
        "messages": other,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}, {"function": other}, 7],
        "tool_choice": choice,
        "response_format": {"type": "json_schema", "json_schema": {"schema": answer}},
        "chat_template_kwargs": other,
        "reasoning_effort": other,
        "continue_final_message": True,
    }
    exchange = Exchange(options, json.dumps(body).encode())
    if exchange.refusal is None:
        assert isinstance(json.loads(exchange.request_body), dict)
    else:
        assert exchange.refusal.status == 400


def of_items(levels: int) -> str:
    return '{"items":' * levels + "{}" + "}" * levels


def of_choices(levels: int) -> str:
    return '{"anyOf":[' * (levels // 2) + "{}" + "]}" * (levels // 2)


@pytest.mark.parametrize("upstream", ["vllm", "llama.cpp"])
@pytest.mark.parametrize("parser", ["hermes", "qwen3_coder", "pythonic"])
@pytest.mark.parametrize("schema", [of_items, of_choices])
@pytest.mark.parametrize(("levels", "served"), [(98, True), (102, False), (900, False)])
def test_a_schema_may_nest_only_so_deep(
    upstream: Any, parser: str, schema: Callable[[int], str], levels: int, served: bool
) -> None:
    tool = f'{{"type": "function", "function": {{"name": "f", "parameters": {schema(levels)}}}}}'
    data = f'{{"messages": [], "tool_choice": "required", "tools": [{tool}]}}'.encode()
    refusal = Exchange(Settings(upstream=upstream, tool_parser=parser), data).refusal
    assert (refusal is None) == served
    assert refusal is None or "nests deeper" in refusal.message


DEEP = "[" * 1010 + "]" * 1010
"""Nested about as deep as JSON is read, and deeper than Python can show."""
K2: Any = {"tool_parser": "k2_horizon", "reasoning_parser": "k2_horizon"}
HERMES: Any = {"tool_parser": "hermes", "reasoning_parser": "qwen3", "responses": "translate"}
CHOOSING = '{"input": "a", "tools": [{"type": "function", "name": "ping"}], "tool_choice": {"type": %s}}'
DEEPLY_ODD: list[tuple[dict[str, Any], str, str, str]] = [
    (K2, "/chat/completions", '{"reasoning_effort": %s}', "chat_template_kwargs"),
    (HERMES, "/chat/completions", '{"tool_choice": %s}', "tool_choice"),
    (HERMES, "/responses", '{"input": [{"type": %s}]}', "input[0].type"),
    (HERMES, "/responses", '{"input": [{"role": %s}]}', "input[0].role"),
    (HERMES, "/responses", CHOOSING, "tool_choice.function.name"),
]


@pytest.mark.parametrize(("options", "path", "body", "param"), DEEPLY_ODD)
def test_a_value_that_cannot_even_be_shown(options: dict[str, Any], path: str, body: str, param: str) -> None:
    refusal = Exchange(Settings(**options), body.replace("%s", DEEP).encode(), path=path).refusal
    assert refusal is not None
    assert refusal.param == param
    assert len(refusal.body) < 2_000


RESPONSES = [
    Settings(upstream=upstream, tool_parser="hermes", reasoning_parser="qwen3", responses=responses)
    for responses in ("parse", "translate")
    for upstream in (None, "vllm", "llama.cpp")
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(RESPONSES), CHOICES, ITEMS | ANYTHING, ANYTHING, ANYTHING)
def test_any_request_of_the_responses_api(options: Settings, choice: Any, items: Any, answer: Any, other: Any) -> None:
    body = {
        "input": items,
        "instructions": other,
        "tools": [
            {"type": "function", "name": "f", "parameters": other},
            *([other] if isinstance(other, dict) else []),
        ],
        "tool_choice": choice,
        "text": {"format": {"type": "json_schema", "name": "a", "schema": answer}},
        "reasoning": other,
        "include": other,
    }
    exchange = Exchange(options, json.dumps(body).encode(), path="/v1/responses")
    if exchange.refusal is None:
        assert isinstance(json.loads(exchange.request_body), dict)
    else:
        assert exchange.refusal.status == 400
