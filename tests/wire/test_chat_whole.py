"""Chat completions in one JSON body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamsieve.parsers.chain import run
from streamsieve.wire.settings import Settings

HERMES: dict[str, Any] = {"tool_parser": "hermes"}
THINKING: dict[str, Any] = {"tool_parser": "hermes", "reasoning_parser": "deepseek_r1"}
PING = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
CALL = {"id": "ID", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
GIVEN_CALL = {"id": "call-1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
BROKEN = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Brest'

Table = list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], str | None, dict[str, Any], str | None]]

# name, settings, request, message in, finish reason in, message out, finish reason out; all have a role
TABLE: Table = [
    ("text", HERMES, {}, {"content": "Hi"}, "stop", {"content": "Hi"}, "stop"),
    (
        "all trays",
        THINKING,
        {},
        {"content": f"Hm</think>Hi\n{PING}"},
        "stop",
        {"content": "Hi", "reasoning": "Hm", "tool_calls": [CALL]},
        "tool_calls",
    ),
    (
        "content is null where empty",
        HERMES,
        {},
        {"content": PING},
        "stop",
        {"content": None, "tool_calls": [CALL]},
        "tool_calls",
    ),
    (
        "no finish reason",
        HERMES,
        {},
        {"content": PING},
        None,
        {"content": None, "tool_calls": [CALL]},
        None,
    ),
    (
        "empty trays of the upstream are left out, its other fields stay",
        THINKING,
        {},
        {
            "content": "Hm</think>Hi",
            "reasoning": None,
            "reasoning_content": "",
            "tool_calls": [],
            "refusal": None,
            "function_call": None,
            "annotations": [],
        },
        "stop",
        {"content": "Hi", "reasoning": "Hm", "refusal": None, "function_call": None, "annotations": []},
        "stop",
    ),
    (
        "the other reasoning field",
        THINKING | {"reasoning_field": "reasoning_content"},
        {},
        {"content": "Hm</think>Hi"},
        "stop",
        {"content": "Hi", "reasoning_content": "Hm"},
        "stop",
    ),
    (
        "both reasoning fields",
        THINKING | {"reasoning_field": "both"},
        {},
        {"content": "Hm</think>Hi"},
        "stop",
        {"content": "Hi", "reasoning": "Hm", "reasoning_content": "Hm"},
        "stop",
    ),
    (
        "reasoning that the request does not want",
        THINKING,
        {"include_reasoning": False},
        {"content": "Hm</think>Hi"},
        "stop",
        {"content": "Hi"},
        "stop",
    ),
    (
        "a broken call is given back, as it is read whole",
        HERMES,
        {},
        {"content": BROKEN},
        "stop",
        {"content": BROKEN},
        "stop",
    ),
    (
        "a cut call stays what it is",
        HERMES,
        {},
        {"content": BROKEN},
        "length",
        {"content": None, "tool_calls": [{**CALL, "function": {"name": "get_tide", "arguments": '{"port": "Brest'}}]},
        "length",
    ),
    (
        "where the prompt ended in thinking's end",
        THINKING | {"prompt_tail": "<think>\n\n</think>\n\n"},
        {},
        {"content": "Hi"},
        "stop",
        {"content": "Hi"},
        "stop",
    ),
    (
        "an upstream that parses calls",
        HERMES,
        {},
        {"content": PING, "tool_calls": [GIVEN_CALL]},
        "stop",
        {"content": PING, "tool_calls": [GIVEN_CALL]},
        "stop",
    ),
    (
        "an upstream that parses reasoning",
        HERMES,
        {},
        {"content": PING, "reasoning_content": "Hm"},
        "stop",
        {"content": PING, "reasoning": "Hm"},
        "stop",
    ),
    (
        "no parser at all",
        {},
        {},
        {"content": PING, "reasoning_content": "Hm"},
        "stop",
        {"content": PING, "reasoning": "Hm"},
        "stop",
    ),
    ("an empty content is not ours without a parser", {}, {}, {"content": ""}, "stop", {"content": ""}, "stop"),
    ("content in parts", HERMES, {}, {"content": [{"text": PING}]}, "stop", {"content": [{"text": PING}]}, "stop"),
    ("no content", HERMES, {}, {"content": None}, "stop", {"content": None}, "stop"),
]


@pytest.mark.parametrize(
    ("options", "request_", "message", "finish", "expected", "expected_finish"),
    [pytest.param(*row[1:], id=row[0]) for row in TABLE],
)
def test_message(
    driver: Any, options: Any, request_: Any, message: Any, finish: Any, expected: Any, expected_finish: Any
) -> None:
    role = {"role": "assistant"}
    choices = [{"index": 0, "message": role | message, "logprobs": {"x": 1}, "finish_reason": finish, "y": 2}]
    body = {"id": "c", "choices": choices, "usage": {"total_tokens": 1}, "z": 3}
    answer = driver.whole(Settings(**options), body, request_)
    for call in answer["choices"][0]["message"].get("tool_calls", ()):
        call["id"] = "ID" if call["id"].startswith("chatcmpl-tool-") else call["id"]
    expected_choice = {**choices[0], "message": role | expected, "finish_reason": expected_finish}
    if request_.get("include_reasoning") is False:  # this tells of tokens, and nobody knows which
        expected_choice["logprobs"] = None
    assert answer == {**body, "choices": [expected_choice]}


def test_each_choice_is_parsed_for_itself(driver: Any) -> None:
    texts = ["A</think><tool_", "B</think>call>"]
    choices = [{"index": index, "message": {"content": text}} for index, text in enumerate(texts)]
    answer = driver.whole(Settings(**THINKING), {"choices": choices}, {"n": 2})
    assert [choice["message"] for choice in answer["choices"]] == [
        {"content": "<tool_", "reasoning": "A"},
        {"content": "call>", "reasoning": "B"},
    ]


@pytest.mark.parametrize(
    "body",
    [
        b'{ "error": {"message": "m"} }',
        b'{"choices": 3}',
        b'{"choices": [ 3, {"index": 0, "text": "a"} ]}',
        b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop", "n": 1e400}]}',
        b"[1]",
        b"no JSON",
        b"\xff",
        b"",
    ],
)
def test_a_body_with_nothing_to_sort_is_the_same_bytes(driver: Any, body: bytes) -> None:
    pieces = [body[:3], body[3:]]
    assert run(driver.exchange(Settings(**HERMES), pieces, {}, "whole")).sent == [b"", b"", body]


def test_what_is_beside_a_sorted_message_is_not_rounded(driver: Any) -> None:
    body = (
        b'{"n":12345678901234567890123,"choices":[{"message":{"content":"<think>"},"finish_reason":"stop","m":1e400}]}'
    )
    answer = run(driver.exchange(Settings(**THINKING), [body], {}, "whole")).body
    assert answer == body.replace(b'"<think>"', b"null")


def test_json_of_a_call_is_as_the_model_wrote_it(driver: Any) -> None:
    call = '<tool_call>{"name": "ping", "arguments": {"a" : 1.10, "b":"\\u00f8"}}</tool_call>'
    answer = driver.whole(Settings(**HERMES), {"choices": [{"message": {"content": call}, "finish_reason": "stop"}]})
    assert json.loads(json.dumps(answer))["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == (
        '{"a" : 1.10, "b":"\\u00f8"}'
    )
