"""What an upstream is asked, dialect by dialect, beside the constraints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamsieve.wire.dialects import DIALECTS
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

TOOLS: Any = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}]
PARSERS: Any = {"reasoning_parser": "qwen3", "tool_parser": "hermes"}
RAW: dict[str, dict[str, Any]] = {
    "vllm": {
        "skip_special_tokens": False, "spaces_between_special_tokens": False, "include_stop_str_in_output": True,
    },
    "sglang": {"skip_special_tokens": False, "separate_reasoning": False, "no_stop_trim": True},
    "llama.cpp": {"parse_tool_calls": False, "reasoning_format": "none"},
    "ollama": {},
    "tgi": {},
    "openai": {},
}  # fmt: skip
CHOICES = {"vllm": None, "sglang": "auto", "llama.cpp": "none", "openai": "auto"}


def asked(upstream: Any, body: dict[str, Any], **options: Any) -> Any:
    sent = json.dumps({"model": "m", "messages": [], **body}).encode()
    exchange = Exchange(Settings(upstream=upstream, **{**PARSERS, **options}), sent)
    assert exchange.refusal is None
    return json.loads(exchange.request_body)


@pytest.mark.parametrize("upstream", DIALECTS)
def test_raw_text(upstream: str) -> None:
    assert asked(upstream, {}) == {"model": "m", "messages": [], **RAW[upstream]}


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("choice", [{}, {"tool_choice": "auto"}])
def test_tools_reach_the_template_and_nobody_else(upstream: str, choice: dict[str, str]) -> None:
    expected = {"tools": TOOLS, **choice, **({"tool_choice": CHOICES[upstream]} if upstream in CHOICES else {})}
    assert asked(upstream, {"tools": TOOLS, **choice}) == {"model": "m", "messages": [], **expected, **RAW[upstream]}


@pytest.mark.parametrize("upstream", DIALECTS)
def test_a_choice_of_none_stays(upstream: str) -> None:
    assert asked(upstream, {"tools": TOOLS, "tool_choice": "none"})["tool_choice"] == "none"


def test_nothing_is_changed_without_a_dialect() -> None:
    body = b'{ "messages": [{"role": "assistant", "reasoning_content": "a"}], "include_reasoning":false, "tools": %b }'
    body %= json.dumps(TOOLS).encode()
    assert Exchange(Settings(**PARSERS), body).request_body == body


def test_a_request_that_has_all_of_it_goes_on_byte_for_byte() -> None:
    body = b'{ "parse_tool_calls": false, "reasoning_format":"none", "messages": [] }'
    assert Exchange(Settings(upstream="llama.cpp", **PARSERS), body).request_body == body


@pytest.mark.parametrize("upstream", DIALECTS)
def test_nothing_is_asked_where_nothing_is_parsed(upstream: Any) -> None:
    body = b'{ "messages": [] }'
    assert Exchange(Settings(upstream=upstream), body).request_body == body


def test_what_the_client_says_of_raw_text_does_not_count() -> None:
    assert asked("vllm", {"skip_special_tokens": True})["skip_special_tokens"] is False


@pytest.mark.parametrize("stops", [{"stop": "\n"}, {"stop": ["a"]}, {"stop_token_ids": [7]}, {"stop_regex": "a"}])
@pytest.mark.parametrize(("upstream", "field"), [("vllm", "include_stop_str_in_output"), ("sglang", "no_stop_trim")])
def test_a_stop_of_the_clients_own_stays_out_of_the_text(upstream: str, field: str, stops: dict[str, Any]) -> None:
    body = asked(upstream, stops)
    assert field not in body
    assert {name: body[name] for name in stops} == stops


@pytest.mark.parametrize("upstream", DIALECTS)
def test_whoever_wants_no_reasoning_still_needs_it_written(upstream: str) -> None:
    assert "include_reasoning" not in asked(upstream, {"include_reasoning": False})


@pytest.mark.parametrize("upstream", DIALECTS)
def test_other_options_pass(upstream: str) -> None:
    others = {
        "n": 2, "stop": ["a"], "logprobs": True, "top_logprobs": 3, "stream": True, "seed": 7, "min_p": 0.1,
        "stream_options": {"include_usage": True}, "chat_template_kwargs": {"enable_thinking": False},
        "mirostat": 2, "x": {"y": [1, None]},
    }  # fmt: skip
    body = asked(upstream, others)
    assert {name: body[name] for name in others} == others


@pytest.mark.parametrize("given", [{}, {"return_token_ids": True}, {"return_token_ids": False}])
def test_token_ids(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"id": 1, "content": "</think>"}]}))
    assert asked("vllm", given, tokenizer=tmp_path)["return_token_ids"] is True
    assert asked("vllm", given).get("return_token_ids") == given.get("return_token_ids")


@pytest.mark.parametrize(("given", "told"), [({}, False), ({"return_token_ids": True}, True)])
def test_ids_that_only_we_asked_for_are_not_told(
    driver: Any, tmp_path: Path, given: dict[str, Any], told: bool
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"id": 1, "content": "</think>"}]}))
    choice = {"index": 0, "message": {"role": "assistant", "content": "a"}, "token_ids": [7], "finish_reason": "stop"}
    settings = Settings(upstream="vllm", tokenizer=tmp_path, **PARSERS)
    assert ("token_ids" in driver.whole(settings, {"choices": [choice]}, given)["choices"][0]) == told


@pytest.mark.parametrize(
    ("upstream", "stream", "ids"), [("vllm", True, True), ("sglang", True, None), ("sglang", False, True)]
)
def test_token_ids_where_a_stream_may_have_them(tmp_path: Path, upstream: str, stream: bool, ids: bool | None) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"id": 1, "content": "</think>"}]}))
    assert asked(upstream, {"stream": stream}, tokenizer=tmp_path).get("return_token_ids") is ids


FINAL: Any = {"messages": [{"role": "assistant", "content": "The"}], "continue_final_message": True}


@pytest.mark.parametrize(
    ("upstream", "added"),
    [("vllm", {"add_generation_prompt": False}), ("llama.cpp", {"add_generation_prompt": False}), ("sglang", {})],
)
def test_continuing_the_final_message(upstream: str, added: dict[str, Any]) -> None:
    assert asked(upstream, FINAL) == {"model": "m", **FINAL, **RAW[upstream], **added}


def message(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "b", **fields}


HISTORIES: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"reasoning": "a"}, "a"),
    ({"reasoning_content": "a"}, "a"),
    ({"reasoning": "a", "reasoning_content": "a"}, "a"),
    ({"reasoning": "", "reasoning_content": "a"}, "a"),
    ({"reasoning": "a", "reasoning_content": None}, "a"),
]


@pytest.mark.parametrize(("fields", "reasoning"), HISTORIES)
@pytest.mark.parametrize("upstream", DIALECTS)
def test_reasoning_in_the_history(upstream: str, fields: dict[str, Any], reasoning: str | None) -> None:
    user = {"role": "user", "content": "a", "reasoning": 7}
    sent = [user, message(**fields)]
    got = asked(upstream, {"messages": [user, message(**fields)]})["messages"]
    name = {"vllm": "reasoning", "ollama": "reasoning", "sglang": "reasoning_content", "llama.cpp": "reasoning_content"}
    if upstream not in name:
        assert got == sent
    elif reasoning is None:
        assert got[1] == message()
    else:
        assert got[1] == message(**{name[upstream]: reasoning})


# upstream, request, the reply, its reasoning, its content
STARTS: list[tuple[Any, dict[str, Any], str, str | None, str | None]] = [
    (None, {}, "Hm.</think>Ja", "Hm.", "Ja"),
    (None, {"reasoning_effort": "none"}, "Ja", "Ja", None),
    ("vllm", {"reasoning_effort": "none"}, "Ja", None, "Ja"),
    ("vllm", {"reasoning_effort": "high"}, "Hm.</think>Ja", "Hm.", "Ja"),
    (
        "vllm",
        {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}},
        "Hm.</think>Ja",
        "Hm.",
        "Ja",
    ),
    ("sglang", {"reasoning_effort": "none"}, "Ja", None, "Ja"),
    ("llama.cpp", {"reasoning_effort": "none"}, "Ja", None, "Ja"),
    (None, FINAL, " tide", None, " tide"),
    ("vllm", FINAL, " tide", None, " tide"),
    (None, {**FINAL, "messages": [message(content=[{"type": "text", "text": "The"}])]}, " tide", None, " tide"),
    (None, {**FINAL, "messages": [message(content="", reasoning="Hm")]}, ", so.</think>Ja", ", so.", "Ja"),
    (None, {**FINAL, "messages": [message(content="<think>Hm")]}, ", so.</think>Ja", ", so.", "Ja"),
    (None, {**FINAL, "messages": [message(content="<think>Hm</think>The")]}, " tide", None, " tide"),
    (None, {**FINAL, "messages": []}, "Hm.</think>Ja", "Hm.", "Ja"),
    ("llama.cpp", {"messages": FINAL["messages"]}, " tide", None, " tide"),
    ("llama.cpp", {"messages": [{"role": "user", "content": "The"}]}, "Hm.</think>Ja", "Hm.", "Ja"),
    ("vllm", {"messages": FINAL["messages"]}, "Hm.</think>Ja", "Hm.", "Ja"),
]


def test_a_final_message_says_more_than_the_usual_tail(driver: Any) -> None:
    settings = Settings(prompt_tail="<think>\n", **PARSERS)
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": " tide"}, "finish_reason": "stop"}]}
    assert driver.whole(settings, body, FINAL)["choices"][0]["message"]["content"] == " tide"


@pytest.mark.parametrize(("upstream", "request_fields", "text", "reasoning", "content"), STARTS)
def test_where_a_reply_starts(
    driver: Any, upstream: Any, request_fields: Any, text: str, reasoning: str | None, content: str | None
) -> None:
    settings = Settings(upstream=upstream, **PARSERS)
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    found = driver.whole(settings, body, request_fields)["choices"][0]["message"]
    assert (found.get("reasoning"), found["content"]) == (reasoning, content)
