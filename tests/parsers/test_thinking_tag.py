"""The structural tag of a whole reply, as xgrammar reads it: free thinking, then nothing but what is demanded."""

from __future__ import annotations

from typing import Any

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.request import Request
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.thinking_tag import may_think, whole_reply
from tests.parsers.grammar_walk import accepts

TOOLS: Any = {"ping": {"type": "object", "properties": {}, "additionalProperties": False}}
CALL = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
MISTRAL = "[TOOL_CALLS]ping[ARGS]{}"
OFF = {"chat_template_kwargs": {"enable_thinking": False}}
OPEN = {"prompt_tail": "<think>\n"}
CLOSED = {"prompt_tail": "<think>\n\n</think>\n\n"}
ANSWER = {"type": "object", "properties": {"high": {"type": "boolean"}}, "required": ["high"]}


# reasoning parser, tool parser, request, calls, reply, whether it is allowed
REPLIES: list[tuple[str | None, str, dict[str, Any], Any, str, bool]] = [
    ("qwen3", "hermes", {}, "required", f"Hm.</think>{CALL}", True),
    ("qwen3", "hermes", {}, "required", f"<think>\nHm.\n</think>\n\n{CALL}", True),
    ("qwen3", "hermes", {}, "required", f"Hm. {CALL}", True),  # a call ends the thinking
    ("qwen3", "hermes", {}, "required", f"a < b </th </think>{CALL}", True),
    ("qwen3", "hermes", {}, "required", "Hm.</think>Ja", False),
    ("qwen3", "hermes", {}, "required", "Hm.", False),
    ("qwen3", "hermes", {}, "required", f"Hm.</think>Ja {CALL}", False),
    ("qwen3", "hermes", {}, "required", "Hm. <tool_call> is what I want.</think>", False),
    ("qwen3", "hermes", OPEN, "required", f"Hm.</think>{CALL}", True),
    ("qwen3", "hermes", OFF, "required", CALL, True),
    ("qwen3", "hermes", OFF, "required", f"Hm.</think>{CALL}", False),
    ("qwen3", "hermes", CLOSED, "required", CALL, True),
    ("qwen3", "hermes", CLOSED, "required", f"Hm.</think>{CALL}", False),
    ("qwen3", "hermes", {}, "auto", "Hm.</think>Ja", True),
    ("qwen3", "hermes", {}, "auto", f"Hm.</think>Ja {CALL}", True),
    ("qwen3", "hermes", {}, "auto", "Hm.</think><tool_call>7", False),
    ("qwen3", "hermes", {}, ANSWER, 'Hm.</think>\n\n{"high": true}', True),
    ("qwen3", "hermes", {}, ANSWER, f"Hm.</think>\n\n{CALL}", True),
    ("qwen3", "hermes", {}, ANSWER, "Hm.</think>Ja", False),
    ("deepseek_r1", "hermes", {}, "required", f"Hm. <tool_call></think>{CALL}", True),  # here a call ends nothing
    ("deepseek_r1", "hermes", {}, "required", f"Hm. {CALL}", False),
    ("mistral", "mistral", {}, "required", f"[THINK]Hm.[/THINK]{MISTRAL}", True),
    ("mistral", "mistral", {}, "required", MISTRAL, True),
    ("mistral", "mistral", {}, "required", f"Hm.{MISTRAL}", False),
    (None, "hermes", {}, "required", CALL, True),
    (None, "hermes", {}, "required", f"<think>Hm.</think>{CALL}", False),
]


@pytest.mark.parametrize(("reasoning", "tool", "asked", "calls", "reply", "allowed"), REPLIES)
def test_replies(
    reasoning: str | None, tool: str, asked: dict[str, Any], calls: Any, reply: str, allowed: bool
) -> None:
    format = registry.select(reasoning_parser=reasoning, tool_parser=tool)
    assert format is not None
    demand = Demand(
        calls=calls if isinstance(calls, str) else "auto",
        tools=TOOLS,
        bound=frozenset(TOOLS),
        response=None if isinstance(calls, str) else calls,
    )
    tag = whole_reply(format, demand, Request(tools=TOOLS, parse_calls=True, **asked))
    assert accepts(tag, reply) == allowed


@pytest.mark.parametrize(
    ("reasoning", "asked", "thinks"),
    [("qwen3", {}, True), ("qwen3", OFF, False), ("qwen3", CLOSED, False), ("mistral", {}, True), (None, {}, False)],
)
def test_may_think(reasoning: str | None, asked: dict[str, Any], thinks: bool) -> None:
    format = registry.select(reasoning_parser=reasoning, tool_parser="mistral" if reasoning == "mistral" else "hermes")
    assert format is not None
    assert may_think(format, Request(**asked)) == thinks
