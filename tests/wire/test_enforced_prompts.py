"""Constraints where the prompt is made here (raw mode): the tail is known, and thinking is switched off before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

TOOLS: Any = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}]


class Prompt(NamedTuple):
    text: str
    tail: str


def opening(body: Mapping[str, Any]) -> Prompt:
    """A template that opens the thinking, or with `enable_thinking` false closes it."""
    thinks = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
    tail = "<think>\n" if thinks else "<think>\n\n</think>\n\n"
    return Prompt(f"user: Hi\nassistant: {tail}", tail)


REQUIRED: Any = {"tools": TOOLS, "tool_choice": "required"}
AN_OBJECT: Any = {"response_format": {"type": "json_object"}}


def asked(upstream: Any, demand: Any = REQUIRED, **options: Any) -> Exchange:
    parsers: Any = {"reasoning_parser": "qwen3", "tool_parser": "hermes", "render_prompt": opening, **options}
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **demand}
    return Exchange(Settings(upstream=upstream, **parsers), json.dumps(body).encode(), path="/v1/chat/completions")


def test_a_tag_goes_with_the_prompt() -> None:
    exchange = asked("vllm")
    body = json.loads(exchange.request_body)
    assert exchange.request_path == "/v1/completions"
    assert body["prompt"].endswith("<think>\n")
    assert body["structured_outputs"].keys() == {"structural_tag"}
    assert not {"tool_choice", "tools", "messages"} & body.keys()


def test_the_prompt_is_made_again_without_thinking() -> None:
    body = json.loads(asked("llama.cpp").request_body)
    assert body["prompt"].endswith("</think>\n\n")
    assert body["json_schema"]["type"] == "array"


@pytest.mark.parametrize(
    ("upstream", "options", "words"),
    [
        ("tgi", {}, "in chat completions only"),
        ("openai", {}, "in chat completions only"),
        ("llama.cpp", {"reasoning_parser": "deepseek_r1"}, "cannot switch off"),
    ],
)
def test_what_cannot_be_enforced(upstream: str, options: dict[str, Any], words: str) -> None:
    refusal = asked(upstream, **options).refusal
    assert refusal is not None
    assert words in refusal.message
    best = json.loads(asked(upstream, enforcement="best_effort", **options).request_body)
    assert best["prompt"].endswith("<think>\n")
    assert not {"json_schema", "response_format", "structured_outputs"} & best.keys()


@pytest.mark.parametrize(("upstream", "refused"), [("openai", True), ("tgi", True), ("vllm", False), ("sglang", False)])
def test_a_response_format_beside_a_prompt(upstream: str, refused: bool) -> None:
    refusal = asked(upstream, AN_OBJECT).refusal
    assert (refusal.param if refusal else None) == ("response_format" if refused else None)


def test_a_prompt_that_would_be_rendered_twice_is_a_wrong_configuration() -> None:
    with pytest.raises(ConfigurationError, match="render_prompt: ollama"):
        asked("ollama")
