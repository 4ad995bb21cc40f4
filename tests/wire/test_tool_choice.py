"""What a request's `tool_choice` asks for, and where it asks for what there cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamsieve.parsers.request import Request
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.request.tool_choice import ToolChoice
from streamsieve.wire.settings import Settings


def tool(name: str, **more: object) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}, **more}}


TOOLS = [tool("a", strict=True), tool("b", strict=False), tool("c")]
NAMED = {"type": "function", "function": {"name": "b"}}


def allowed(mode: str, *names: str) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


# tool_choice (… where the request has none), calls, names
CHOICES: list[tuple[object, str, list[str]]] = [
    (..., "auto", ["a", "b", "c"]),
    (None, "auto", ["a", "b", "c"]),
    ("auto", "auto", ["a", "b", "c"]),
    ("none", "none", ["a", "b", "c"]),
    ("required", "required", ["a", "b", "c"]),
    (NAMED, "required", ["b"]),
    ({"type": "function", "name": "b"}, "required", ["b"]),
    (allowed("auto", "c", "a"), "auto", ["a", "c"]),
    (allowed("required", "c"), "required", ["c"]),
    ({"type": "custom", "custom": {"name": "x"}}, "required", []),
]


@pytest.mark.parametrize(("choice", "calls", "names"), CHOICES)
def test_choices(choice: object, calls: str, names: list[str]) -> None:
    body: dict[str, Any] = {"tools": TOOLS} | ({} if choice is ... else {"tool_choice": choice})
    found = ToolChoice.of(body, Request.from_body(body))
    assert (found.calls, list(found.tools)) == (calls, names)
    assert found.strict == {name: strict for name, strict in (("a", True), ("b", False)) if name in names}


@pytest.mark.parametrize("choice", [..., None, "auto", "none"])
def test_without_tools_no_call_is_expected(choice: object) -> None:
    body: dict[str, Any] = {} if choice is ... else {"tool_choice": choice}
    assert ToolChoice.of(body, Request.from_body(body)).calls == "none"


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"tool_choice": "required"}, "tool_choice", "only allowed when 'tools' are specified"),
    ({"tool_choice": "required", "tools": []}, "tool_choice", "only allowed when 'tools' are specified"),
    ({"tool_choice": NAMED}, "tool_choice", "only allowed when 'tools' are specified"),
    ({"tool_choice": allowed("auto", "a")}, "tool_choice", "only allowed when 'tools' are specified"),
    ({"tool_choice": NAMED, "tools": [tool("a")]}, "tool_choice", "no function named 'b' was specified"),
    ({"tool_choice": allowed("auto", "z"), "tools": TOOLS}, "tool_choice", "no function named 'z' was specified"),
    ({"tool_choice": {"type": "function"}, "tools": TOOLS}, "tool_choice.function.name", "Missing required parameter"),
    (
        {"tool_choice": allowed("auto"), "tools": TOOLS},
        "tool_choice.allowed_tools",
        "a list of 'tools' that is not empty",
    ),
    ({"tool_choice": allowed("any", "a"), "tools": TOOLS}, "tool_choice.allowed_tools", "is 'auto' or 'required'"),
    ({"tool_choice": {"type": "allowed_tools"}, "tools": TOOLS}, "tool_choice.allowed_tools", "it has a 'mode'"),
    ({"tool_choice": "always", "tools": TOOLS}, "tool_choice", "Supported values are: 'none', 'auto', and 'required'."),
    ({"tool_choice": 7, "tools": TOOLS}, "tool_choice", "Invalid type for 'tool_choice'"),
]


@pytest.mark.parametrize(("body", "param", "words"), REFUSED)
@pytest.mark.parametrize("upstream", [None, "vllm", "tgi"])
def test_what_there_cannot_be_is_a_400(body: dict[str, Any], param: str, words: str, upstream: Any) -> None:
    exchange = Exchange(
        Settings(tool_parser="hermes", upstream=upstream), json.dumps({"messages": [], **body}).encode()
    )
    assert isinstance(exchange.refusal, Refused)
    assert exchange.refusal.status == 400
    error = json.loads(exchange.refusal.body)["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert words in error["message"]


@pytest.mark.parametrize("named", [NAMED, {"type": "function", "name": "b"}])
def test_a_named_function_leaves_room_for_one_call(named: dict[str, Any]) -> None:
    body = {"messages": [], "tools": TOOLS, "tool_choice": named}
    exchange = Exchange(Settings(tool_parser="hermes", upstream="llama.cpp"), json.dumps(body).encode())
    assert json.loads(exchange.request_body)["json_schema"]["type"] == "object"
    assert Request.from_body(body).named_tool_choice


@pytest.mark.parametrize("settings", [Settings(), Settings(reasoning_parser="qwen3", upstream="vllm")])
def test_where_calls_are_not_read_it_is_the_upstreams_business(settings: Settings) -> None:
    exchange = Exchange(settings, b'{"messages": [], "tool_choice": "required"}')
    assert exchange.refusal is None
    assert json.loads(exchange.request_body)["tool_choice"] == "required"
