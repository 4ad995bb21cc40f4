"""Every built-in format with a tool parser: a required call is true to its schema, and the thinking before it free."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from streamsieve_standins.vllm import Vllm

from streamsieve.parsers import registry
from streamsieve.parsers.chain import run
from streamsieve.parsers.format import Format
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

SCHEMA = {
    "type": "object",
    "properties": {
        "port": {"type": "string", "minLength": 2, "maxLength": 12},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "unit": {"enum": ["m", "ft"]},
    },
    "required": ["port", "days", "unit"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "get_tide", "parameters": SCHEMA}}
FORMATS = [format for format in registry.built_in() if format.tool_names and (format.calls or format.messages)]
CASES = [pytest.param(format, True, id=f"{format.name}, thinking") for format in FORMATS]
CASES += [pytest.param(format, False, id=f"{format.name}, calls only") for format in FORMATS if not format.messages]
VALUES = ("\n</parameter>\n", "</parameter>", "</arg_value>")
"""What ends a value that stands raw between tags."""


def habits(format: Format) -> tuple[str, ...]:
    """How a model of this format gets out of free text."""
    closers = format.reasoning.closers if format.reasoning else ()
    messages = tuple(format.messages.markers) if format.messages else ()
    return (*closers, *(format.calls.closers if format.calls else ()), *messages, *VALUES)


async def answer(exchange: Exchange, text: str) -> Any:
    message = {"role": "assistant", "content": text}
    completion = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    exchange.start(200, [(b"content-type", b"application/json")])
    await exchange.feed(json.dumps(completion).encode())
    return json.loads(await exchange.close())["choices"][0]


@pytest.mark.parametrize(("format", "thinks"), CASES)
def test_a_required_call(format: Format, thinks: bool) -> None:
    settings = Settings(
        upstream="vllm",
        tool_parser=format.tool_names[0],
        reasoning_parser=format.reasoning_names[0] if thinks and format.reasoning_names else None,
    )
    asked = {"messages": [], "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    exchange = Exchange(settings, json.dumps(asked).encode())
    upstream = Vllm("The tide is high.", habits=habits(format), end="" if format.messages else "".join(format.ends[:1]))
    (message,) = upstream.messages(json.loads(exchange.request_body))
    choice = run(answer(exchange, message["content"]))
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "get_tide"
    jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMA)
    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "tool_calls")
