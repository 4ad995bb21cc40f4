"""Any text at all, in any pieces, by either way: events that keep to the grammar, and the trays of the parser."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector
from streamsieve.wire.settings import Settings

PIECES = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    '{"name": "ping", "arguments": {}}',
    '{"name": "get_tide", "arguments": {"port": "Bodø", ',
    '"days": 2}}',
    "<tool",
    "\n",
    " ",
    "Hello 😀",
    "<|im_end|>",
]
INCOMPLETE = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("get_tide", "ping")]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=14),
    size=st.integers(1, 30),
    finish=st.sampled_from(["stop", "length"]),
    deliver=st.sampled_from(["stream", "complete"]),
)
def test_any_text(driver, chat, upstream, parsers, trays_of, pieces, size, finish, deliver) -> None:
    raw = "".join(pieces)
    chosen = Settings(**parsers, deliver=deliver)
    assert chosen.format is not None
    machine = chosen.format.machine(Request.from_body({"tools": TOOLS}), deliver=deliver)
    collector = Collector()
    collector.add(machine.feed(raw))
    collector.add(machine.finish(finish))
    message = collector.message(finish, Request())
    expected = (message.reasoning, message.content, [(call.name, call.arguments) for call in message.tool_calls])

    translating = Settings(**parsers, deliver=deliver, responses="translate")
    response = driver.stream(translating, chat.reply(raw, size, finish)).check().response
    assert trays_of(response["output"]) == expected
    end = INCOMPLETE if finish == "length" else {}
    events = upstream.reply(raw, size, **end)
    assert trays_of(driver.stream(chosen, events).check().response["output"]) == expected
