"""A call of a function that is not in the request's tools: a call, or by option text (contract, rule 6)."""

from __future__ import annotations

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.conformance import specimens
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message, ToolCall

FORMATS = {format.name: format for format in registry.built_in() if specimens.calls_are_known(format)}


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("whole", [True, False])
def test_by_option_it_stays_text(format: Format, whole: bool) -> None:
    asked = specimens.asked(format)
    text = format.render(Message(None, None, [ToolCall("id", "ping", "{}")]), asked)
    others = [{"type": "function", "function": {"name": "other"}}]
    for option, calls in (("call", 1), ("text", 0)):
        body = {"tools": others, "chat_template_kwargs": dict(asked.chat_template_kwargs)}
        message = read(format, [text], Request.from_body(body, unknown_tools=option), whole=whole)
        assert len(message.tool_calls) == calls
        assert calls or "ping" in (message.content or "") + (message.reasoning or "")
