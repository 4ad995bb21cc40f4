"""A complete call is announced at once, whole, where that is wanted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamsieve.wire.settings import Settings

CALLS = (
    '<tool_call>\n{"name": "ping", "arguments": {"a": 1}}\n</tool_call>\n<tool_call>\n{"name": "pong"}\n</tool_call>'
)


def announced(body: bytes) -> list[dict[str, Any]]:
    events = [event for event in body.decode().split("\n\n") if event.startswith("event: tool_call\n")]
    return [json.loads(event.partition("data: ")[2]) for event in events]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_each_call_is_announced_once_and_whole(driver: Any, size: int) -> None:
    settings = Settings(tool_parser="hermes", announce_calls=True)
    texts = [CALLS[start : start + size] for start in range(0, len(CALLS), size)]
    reply = driver.stream(settings, [{"delta": {"role": "assistant"}}, *({"delta": {"content": one}} for one in texts)])
    events = announced(reply.body)
    calls = [
        (event["tool_call"]["choice"], event["tool_call"]["index"], event["tool_call"]["function"]) for event in events
    ]
    assert calls == [(0, 0, {"name": "ping", "arguments": '{"a": 1}'}), (0, 1, {"name": "pong", "arguments": "{}"})]
    assert all(event["choices"] == [] and event["id"] == "c-1" for event in events)
    message = reply.message
    assert [call["id"] for call in message["tool_calls"]] == [event["tool_call"]["id"] for event in events]


def test_it_is_announced_in_the_very_event_that_completes_it(driver: Any) -> None:
    settings = Settings(tool_parser="hermes", announce_calls=True)
    texts = ['<tool_call>{"name": "ping", "arguments": {}}', "</tool_call>", " More."]
    reply = driver.stream(settings, [{"delta": {"content": one}} for one in texts])
    assert [len(announced(sent)) for sent in reply.sent] == [0, 1, 0, 0]


def test_a_call_that_was_cut_is_not_announced(driver: Any) -> None:
    settings = Settings(tool_parser="hermes", announce_calls=True)
    texts = [
        {"delta": {"content": '<tool_call>{"name": "ping", "arguments": {"a'}},
        {"delta": {}, "finish_reason": "length"},
    ]
    assert announced(driver.stream(settings, texts).body) == []


def test_nothing_is_announced_unless_that_is_wanted(driver: Any) -> None:
    reply = driver.stream(Settings(tool_parser="hermes"), [{"delta": {"content": CALLS}}])
    assert b"event: tool_call" not in reply.body
