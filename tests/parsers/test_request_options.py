"""What a request's `chat_template_kwargs` choose beside thinking: errors, and the ways back to text."""

from __future__ import annotations

import json

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.formats.hy import hy
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message, ToolCall

TOOLS = [{"type": "function", "function": {"name": "save", "parameters": {"properties": {"text": {"type": "string"}}}}}]


def chosen(name: str) -> Format:
    found = registry.select(tool_parser=name, reasoning_parser=name)
    assert found
    return found


def request(**kwargs: object) -> Request:
    return Request.from_body({"tools": TOOLS, "chat_template_kwargs": kwargs})


@pytest.mark.parametrize(
    ("kwargs", "told"),
    [
        ({"reasoning_effort": "max"}, ["chat_template_kwargs.reasoning_effort", "'max'", "high", "medium", "low"]),
        ({"tool_call_format": "yaml"}, ["chat_template_kwargs.tool_call_format", "'yaml'", "xml_typed", "json"]),
    ],
)
def test_k2_horizon_names_the_choices(kwargs: dict[str, object], told: list[str]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        chosen("k2_horizon").machine(request(**kwargs))
    assert all(word in str(raised.value) for word in told)


ARGUMENTS = {"text": " a\n", "count": 3, "ratio": 1.5, "ready": True, "none": None, "tags": ["x", 1], "meta": {"k": []}}


@pytest.mark.parametrize("style", ["xml_typed", "json"])
def test_k2_horizon_reads_what_it_writes(style: str) -> None:
    """Without a schema the type tags say what a value is, and JSON needs none."""
    message = Message("thought", "Hi.", [ToolCall("id", "save", json.dumps(ARGUMENTS))])
    asked = request(tool_call_format=style, reasoning_effort="low")
    text = chosen("k2_horizon").render(message, asked)
    assert "<ifm|think_faster>" in text
    (call,) = read(chosen("k2_horizon"), list(text), asked).tool_calls
    assert json.loads(call.arguments) == ARGUMENTS


@pytest.mark.parametrize("name", ["deepseek_v4", "deepseek_v41"])
def test_dsml_says_what_is_no_string(name: str) -> None:
    message = Message(None, None, [ToolCall("id", "save", json.dumps(ARGUMENTS))])
    text = chosen(name).render(message, request())
    (call,) = read(chosen(name), [text], request()).tool_calls
    assert json.loads(call.arguments) == ARGUMENTS


def test_hy_markers_carry_the_suffix_of_the_checkpoint() -> None:
    format = hy(4, ":opensource")
    s = ":opensource"
    reply = f"a</think{s}><tool_calls{s}><tool_call{s}>ping</tool_call{s}></tool_calls{s}>"
    message = read(format, list(reply), request())
    assert (message.reasoning, [call.name for call in message.tool_calls]) == ("a", ["ping"])
    assert read(format, ["a</think>b"], request()).reasoning == "a</think>b"
