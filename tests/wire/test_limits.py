"""What one reply may make us hold, and what happens where it wants more."""

from __future__ import annotations

from typing import Any

import pytest

from streamsieve.parsers.arguments.json_text import MAX_NESTING
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.settings import Settings

CALL = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'


@pytest.mark.parametrize(
    "logprobs", [None, {"content": [{"token": " ", "logprob": -1.0, "bytes": None, "top_logprobs": []}]}]
)
def test_a_reply_that_holds_too_much_goes_on_as_text(driver: Any, caplog: Any, logprobs: Any) -> None:
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", max_held=100)
    held = '<tool_call>{"arguments": {"a": "'
    texts = ["Fine.</think>", held, *["x" * 40] * 5, CALL]
    chunks = [{"delta": {"content": text}, "logprobs": logprobs} for text in texts]
    reply = driver.stream(settings, [*chunks, {"delta": {}, "finish_reason": "stop"}])
    assert reply.message["reasoning"] == "Fine."
    assert reply.message["content"] == "".join(texts[1:])
    assert reply.told[-1][2] == "stop"
    assert "max_held" in caplog.text
    assert "xxx" not in caplog.text


def test_what_flows_may_be_as_long_as_it_likes(driver: Any) -> None:
    settings = Settings(tool_parser="hermes", max_held=50)
    texts = ['<tool_call>{"name": "ping", "arguments": {"a": "', *["x" * 40] * 9, '"}}</tool_call>']
    reply = driver.stream(settings, [{"delta": {"content": text}} for text in texts])
    assert reply.message["tool_calls"][0]["function"]["arguments"] == '{"a": "' + "x" * 360 + '"}'


def test_white_space_that_waits_counts(driver: Any) -> None:
    settings = Settings(tool_parser="hermes", max_held=100)
    texts = ["a", *[" " * 40] * 4, "b"]
    reply = driver.stream(settings, [{"delta": {"content": text}} for text in texts])
    assert reply.message["content"] == "".join(texts)


@pytest.mark.parametrize("whole", [False, True])
def test_calls_beyond_the_limit_are_left_out(driver: Any, whole: bool) -> None:
    settings = Settings(tool_parser="hermes", max_calls=2)
    if whole:
        message = {"role": "assistant", "content": CALL * 4}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        calls = driver.whole(settings, body)["choices"][0]["message"]["tool_calls"]
    else:
        calls = driver.stream(settings, [{"delta": {"content": CALL}}] * 4).message["tool_calls"]
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("option", "value"), [("max_held", 0), ("max_calls", True), ("max_calls", "9"), ("announce_calls", "yes")]
)
def test_a_limit_that_is_none_is_refused(option: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=option):
        Settings(**{option: value})


def test_arguments_that_nest_too_deep_break_the_call(driver: Any) -> None:
    settings = Settings(tool_parser="hermes", deliver="complete")
    for depth, calls in ((MAX_NESTING - 1, 1), (MAX_NESTING, 0)):
        arguments = f'{{"a": {"[" * depth}{"]" * depth}}}'
        text = f'<tool_call>{{"name": "ping", "arguments": {arguments}}}</tool_call>'
        message = driver.stream(settings, [{"delta": {"content": text}}]).message
        assert len(message.get("tool_calls") or ()) == calls
        assert message.get("content") == (None if calls else text)
