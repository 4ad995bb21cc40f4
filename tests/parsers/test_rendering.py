"""How formats write a message: the markers round each tray as the model writes them."""

from __future__ import annotations

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message, ToolCall

TOOLS = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}]
ASKED = Request.from_body({"tools": TOOLS})
FORMATS = {format.name: format for format in registry.built_in()}
PING = ToolCall("7", "ping", "{}")

WRITTEN = [
    # format, reasoning, content, calls, what is written
    ("jamba", None, "Hi", 1, 'Hi<tool_calls>[{"name": "ping", "arguments": {}}]</tool_calls>'),
    ("internlm", None, None, 1, '<|action_start|><|plugin|>\n{"name": "ping", "parameters": {}}\n<|action_end|>'),
    ("phi4_mini_json", None, None, 1, 'functools[{"name": "ping", "arguments": {}}]'),
    ("apertus", None, None, 1, '<|tools_prefix|>[{"ping": {}}]<|tools_suffix|>'),
    ("granite", "why", "Hi", 0, "Here is my thought process:whyHere is my response:Hi"),
    ("granite", None, "Hi", 1, 'Hi<|tool_call|>[{"name": "ping", "arguments": {}}]'),
    ("ernie45", None, "Hi", 0, "<think></think><response>Hi</response>"),
    ("hunyuan_a13b", None, "Hi", 0, "<answer>\nHi\n</answer>"),
    ("cohere_command3", None, "Hi", 0, "<|START_RESPONSE|>Hi<|END_RESPONSE|>"),
    ("cohere_command4", None, "Hi", 0, "<|START_THINKING|><|END_THINKING|><|START_TEXT|>Hi<|END_TEXT|>"),
    ("cohere_command3", "why", None, 1, '<|START_THINKING|>why<|END_THINKING|><|START_ACTION|>'
     '[{"tool_call_id": "7", "tool_name": "ping", "parameters": {}}]<|END_ACTION|>'),
    ("gigachat3", None, None, 1, '<|function_call|> {"name": "ping", "arguments": {}}'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reasoning", "content", "calls", "written"), WRITTEN)
def test_markers_stand_round_each_tray(
    name: str, reasoning: str | None, content: str | None, calls: int, written: str
) -> None:
    assert FORMATS[name].render(Message(reasoning, content, [PING] * calls), ASKED) == written


UNSAID = [
    ("gigachat3", Message(tool_calls=[PING, PING]), "one call a reply"),
    ("hunyuan_a13b", Message(content="a</answer>b"), "a marker of the format"),
    ("cohere_command3", Message(content="a<co>b"), "a tag that would be dropped"),
    ("granite", Message("why Here's my response: so", "Hi"), "the reasoning would end earlier"),
]


@pytest.mark.parametrize(("name", "message", "why"), UNSAID)
def test_what_would_be_read_otherwise_is_refused(name: str, message: Message, why: str) -> None:
    with pytest.raises(Inexpressible):
        FORMATS[name].render(message, ASKED)
