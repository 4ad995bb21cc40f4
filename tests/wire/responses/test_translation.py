"""What a chat completions upstream is asked for a request of the Responses API, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from streamsieve.parsers.chain import run
from streamsieve.parsers.request import Request
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.observing.record import Record
from streamsieve.wire.settings import Settings

SETTINGS = Settings(responses="translate")
SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}}


def exchange(request: dict[str, Any]) -> Exchange:
    return Exchange(SETTINGS, json.dumps({"model": "m", **request}).encode(), path="/v1/responses")


def asked(request: dict[str, Any]) -> dict[str, Any]:
    made = exchange(request)
    assert made.refusal is None
    assert made.request_path == "/v1/chat/completions"
    body: dict[str, Any] = json.loads(made.request_body)
    assert body.pop("model") == "m"
    return body


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def said(**fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": None, **fields}


def call(id: str, arguments: str = "{}") -> dict[str, object]:
    return {"id": id, "type": "function", "function": {"name": "ping", "arguments": arguments}}


def call_item(id: str, arguments: str = "{}") -> dict[str, object]:
    return {"type": "function_call", "id": "fc_1", "call_id": id, "name": "ping", "arguments": arguments}


def result_item(id: str, output: object) -> dict[str, object]:
    return {"type": "function_call_output", "call_id": id, "output": output}


TEXT = {"type": "output_text", "text": "Yes.", "annotations": []}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
SUMMED = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
ANSWER = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [TEXT]}

# instructions, input, messages
HISTORIES: list[tuple[str | None, Any, list[Any]]] = [
    (None, "Hello?", [user("Hello?")]),
    ("Be brief.", "Hello?", [{"role": "system", "content": "Be brief."}, user("Hello?")]),
    (None, [{"role": "user", "content": "Hello?"}], [user("Hello?")]),
    (None, [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "A"}]}], [user("A")]),
    (
        "Be brief.",
        [{"role": "developer", "content": "In French."}, user("Hello?")],
        [{"role": "system", "content": "Be brief.\n\nIn French."}, user("Hello?")],
    ),
    (
        None,
        [user("A"), {"role": "system", "content": "B"}],
        [user("A"), {"role": "system", "content": "B"}],
    ),
    (
        None,
        [user([{"type": "input_text", "text": "See"}, {"type": "input_image", "image_url": "u", "detail": "low"}])],
        [user([{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "u", "detail": "low"}}])],
    ),
    (
        None,
        [user([{"type": "input_file", "file_data": "data:,x", "filename": "a.txt"}])],
        [user([{"type": "file", "file": {"file_data": "data:,x", "filename": "a.txt"}}])],
    ),
    (None, [user("A"), ANSWER, user("B")], [user("A"), said(content="Yes."), user("B")]),
    (None, [user("A"), {"role": "assistant", "content": "Yes."}], [user("A"), said(content="Yes.")]),
    (None, [THOUGHT, ANSWER], [said(reasoning="Hm.", content="Yes.")]),
    (None, [SUMMED, ANSWER], [said(reasoning="Hm.", content="Yes.")]),
    (None, [SEALED, ANSWER], [said(content="Yes.")]),
    (
        None,
        [THOUGHT, ANSWER, call_item("a"), call_item("b", '{"x": 1}'), result_item("a", "1"), result_item("b", "2")],
        [
            said(reasoning="Hm.", content="Yes.", tool_calls=[call("a"), call("b", '{"x": 1}')]),
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "content": "2"},
        ],
    ),
    (
        None,
        [call_item("a"), result_item("a", [{"type": "input_text", "text": "1"}]), call_item("b")],
        [
            said(tool_calls=[call("a")]),
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            said(tool_calls=[call("b")]),
        ],
    ),
    (None, [ANSWER, call_item("a"), ANSWER], [said(content="Yes.Yes.", tool_calls=[call("a")])]),
    (
        None,
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
        [said(refusal="No.")],
    ),
]


@pytest.mark.parametrize(("instructions", "given", "messages"), HISTORIES)
def test_input_becomes_messages(instructions: str | None, given: Any, messages: list[Any]) -> None:
    request = {"input": given} | ({"instructions": instructions} if instructions else {})
    assert asked(request) == {"messages": messages}


TOOL = {"type": "function", "name": "ping", "description": "d", "parameters": SCHEMA, "strict": True}
OTHER = {"type": "function", "name": "pong", "parameters": None}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "ping", "description": "d", "parameters": SCHEMA, "strict": True},
}
CHAT_OTHER = {"type": "function", "function": {"name": "pong"}}

# fields of the request, fields that the upstream is sent
FIELDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
    ({"stream": False, "stream_options": {"include_obfuscation": False}}, {"stream": False}),
    ({"max_output_tokens": 5, "temperature": 0.5, "top_p": 0.9}, {"max_tokens": 5, "temperature": 0.5, "top_p": 0.9}),
    ({"tools": [TOOL, OTHER]}, {"tools": [CHAT_TOOL, CHAT_OTHER]}),
    ({"tools": []}, {}),
    ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}, {}),
    ({"tool_choice": "required"}, {"tool_choice": "required"}),
    ({"tools": [TOOL], "tool_choice": "required"}, {"tools": [CHAT_TOOL], "tool_choice": "required"}),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "name": "ping"}},
        {"tools": [CHAT_TOOL], "tool_choice": {"type": "function", "function": {"name": "ping"}}},
    ),
    (
        {
            "tools": [TOOL, OTHER],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "pong"}],
            },
        },
        {"tools": [CHAT_OTHER], "tool_choice": "required"},
    ),
    ({"tools": [TOOL], "parallel_tool_calls": False}, {"tools": [CHAT_TOOL], "parallel_tool_calls": False}),
    ({"text": {"format": {"type": "text"}, "verbosity": "low"}}, {"verbosity": "low"}),
    ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
    (
        {"text": {"format": {"type": "json_schema", "name": "t", "schema": SCHEMA, "strict": True}}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "t", "schema": SCHEMA, "strict": True}}},
    ),
    ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
    ({"include": ["message.output_text.logprobs"], "top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
    ({"include": ["reasoning.encrypted_content"], "top_logprobs": 0}, {}),
    ({"store": False, "metadata": {"a": "b"}, "truncation": "auto", "background": False, "max_tool_calls": 3}, {}),
    ({"previous_response_id": None, "temperature": None, "tools": None, "text": None}, {}),
    ({"user": "u", "service_tier": "auto", "top_k": 5, "chat_template_kwargs": {"a": 1}}, {}),
]
PASSED_ON = ("user", "service_tier", "top_k", "chat_template_kwargs")


@pytest.mark.parametrize(("fields", "expected"), FIELDS)
def test_fields_are_translated(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    passed_on = {name: fields[name] for name in PASSED_ON if name in fields}
    assert asked({"input": "A", **fields}) == {"messages": [user("A")], **expected, **passed_on}


# fields of the request, the param that the refusal names, words of its message
REFUSED: list[tuple[dict[str, Any], str, list[str]]] = [
    ({"input": None}, "input", ["string"]),
    ({"input": []}, "input", ["empty"]),
    ({"input": ["A"]}, "input[0]", ["object"]),
    ({"instructions": 3}, "instructions", ["string"]),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", ["user", "assistant"]),
    ({"input": [{"role": "user", "content": 3}]}, "input[0].content", ["parts"]),
    ({"input": [{"role": "user", "content": ["A"]}]}, "input[0].content[0]", ["part"]),
    ({"input": [{"role": "user", "content": [{}]}]}, "input[0].content[0]", ["part"]),
    ({"input": [user([{"type": "input_image", "file_id": "f"}])]}, "input[0].content[0]", ["input_image", "image_url"]),
    (
        {"input": [{"role": "assistant", "content": [{"type": "input_image", "image_url": "u"}]}]},
        "input[0].content",
        ["text"],
    ),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]", ["item_reference", "function_call_output"]),
    ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0]", ["web_search_call"]),
    ({"input": [{"type": "function_call", "name": "a", "arguments": "{}"}]}, "input[0].call_id", ["string"]),
    ({"input": [{"type": "function_call_output", "output": "1"}]}, "input[0].call_id", ["string"]),
    ({"previous_response_id": "resp_1"}, "previous_response_id", ["stored"]),
    ({"conversation": "conv_1"}, "conversation", ["stored"]),
    ({"prompt": {"id": "p"}}, "prompt", ["stored"]),
    ({"background": True}, "background", ["background"]),
    ({"n": 2}, "n", ["one reply"]),
    ({"tools": {}}, "tools", ["list"]),
    ({"tools": [3]}, "tools[0]", ["object"]),
    ({"tools": [TOOL, {"type": "web_search"}]}, "tools[1].type", ["web_search", "functions only"]),
    ({"tools": [{"type": "function"}]}, "tools[0].name", ["string"]),
    ({"tools": [TOOL], "tool_choice": {"type": "mcp"}}, "tool_choice", ["mcp", "allowed_tools"]),
    (
        {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "pong"}]}},
        "tool_choice",
        ["in tools"],
    ),
    ({"text": "x"}, "text", ["object"]),
    ({"text": {"format": {"type": "grammar"}}}, "text.format", ["json_schema"]),
]


@pytest.mark.parametrize(("fields", "param", "words"), REFUSED)
def test_what_chat_completions_cannot_do_is_refused(fields: dict[str, Any], param: str, words: list[str]) -> None:
    refusal = exchange({"input": "A", **fields}).refusal
    assert refusal is not None
    assert (refusal.status, refusal.param) == (400, param)
    assert [word for word in words if word not in refusal.message] == []


def test_tools_are_checked_as_in_a_chat_completion() -> None:
    settings = Settings(responses="translate", tool_parser="hermes")
    body = {"model": "m", "input": "A", "tool_choice": "required"}
    refusal = Exchange(settings, json.dumps(body).encode(), path="/responses").refusal
    assert refusal is not None
    assert refusal.param == "tool_choice"


SEARCH = {"type": "web_search"}


def of(mode: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": [*tools]}


# what is said of tools to an upstream with the API, whether there can be such calls
CHOICES: list[tuple[dict[str, Any], bool]] = [
    ({"tool_choice": "auto"}, True),
    ({"tool_choice": "required"}, False),
    ({"tool_choice": "required", "tools": [SEARCH]}, True),
    ({"tool_choice": SEARCH, "tools": [SEARCH]}, True),
    ({"tool_choice": {"type": "function", "name": "ping"}}, False),
    ({"tool_choice": {"type": "function", "name": "ping"}, "tools": [TOOL]}, True),
    ({"tool_choice": {"type": "function", "name": "pong"}, "tools": [TOOL]}, False),
    ({"tool_choice": {"type": "function"}, "tools": [TOOL]}, False),
    ({"tool_choice": of("auto", {"type": "function", "name": "ping"}), "tools": [TOOL]}, True),
    ({"tool_choice": of("auto", {"type": "function", "name": "pong"}), "tools": [TOOL]}, False),
    ({"tool_choice": of("required", SEARCH), "tools": [TOOL, SEARCH]}, True),
    ({"tool_choice": of("required"), "tools": [TOOL]}, False),
    ({"tool_choice": of("any", TOOL), "tools": [TOOL]}, False),
    ({"tool_choice": "always", "tools": [TOOL]}, False),
]


@pytest.mark.parametrize(("fields", "served"), CHOICES)
def test_a_choice_is_checked_before_an_upstream_with_the_api_too(fields: dict[str, Any], served: bool) -> None:
    data = json.dumps({"model": "m", "input": "A", **fields}).encode()
    refusal = Exchange(Settings(tool_parser="hermes"), data, path="/v1/responses").refusal
    assert (refusal is None) == served
    assert refusal is None or refusal.param.startswith("tool_choice")
    assert Exchange(Settings(), data, path="/v1/responses").refusal is None


@pytest.mark.parametrize("responses", ["parse", "translate"])
def test_observers_find_the_shape_of_a_chat_completion(responses: Literal["parse", "translate"]) -> None:
    records: list[Record] = []
    settings = Settings(responses=responses, tool_parser="hermes", observers=[records.append])
    body = {"model": "m", "input": "A", "tools": [TOOL]}
    run(Exchange(settings, json.dumps(body).encode(), path="/responses").aclose())
    run(Exchange(settings, json.dumps({**body, "instructions": 3}).encode(), path="/responses").aclose())
    assert [record.api for record in records] == ["responses", "responses"]
    assert records[0].request.tools == {"ping": SCHEMA}
    assert Request.from_body(records[0].asked).tools == {"ping": SCHEMA}


def test_the_dialect_of_the_upstream_is_spoken() -> None:
    settings = Settings(responses="translate", tool_parser="hermes", reasoning_parser="qwen3", upstream="vllm")
    body = {"model": "m", "input": [user("A"), THOUGHT, ANSWER, user("B")], "tools": [TOOL], "tool_choice": "required"}
    made = Exchange(settings, json.dumps(body).encode(), path="/v1/responses")
    sent = json.loads(made.request_body)
    assert made.request_path == "/v1/chat/completions"
    assert sent["skip_special_tokens"] is False
    assert "structured_outputs" in sent


def test_a_prompt_may_be_rendered_of_it() -> None:
    def renderer(request: Mapping[str, object]) -> SimpleNamespace:
        return SimpleNamespace(text=f"<user>{request['messages']}</user>", tail="<think>")

    settings = Settings(tool_parser="hermes", render_prompt=renderer)
    made = Exchange(settings, b'{"model": "m", "input": "A", "max_output_tokens": 5}', path="/v1/responses")
    sent = json.loads(made.request_body)
    assert made.request_path == "/v1/completions"
    assert sent["prompt"] == f"<user>{[user('A')]}</user>"
    assert sent["max_tokens"] == 5


def test_an_upstream_with_the_api_is_sent_what_the_client_wrote() -> None:
    data = b'{"model":  "m", "input": "A", "tools": [{"type": "web_search"}], "previous_response_id": "r"}'
    made = Exchange(Settings(tool_parser="hermes"), data, path="/v1/responses")
    assert (made.refusal, made.request_path, made.request_body) == (None, "/v1/responses", data)


def test_its_dialect_is_spoken_too() -> None:
    settings = Settings(tool_parser="hermes", upstream="vllm")
    made = Exchange(settings, b'{"model": "m", "input": "A", "include_reasoning": false}', path="/v1/responses")
    expected = {"model": "m", "input": "A", "skip_special_tokens": False, "spaces_between_special_tokens": False}
    assert json.loads(made.request_body) == expected
