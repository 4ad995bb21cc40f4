"""Raw mode: the prompt is rendered here, and the upstream, which has no chat at all, goes on with it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from streamsieve import wrap
from streamsieve.backends.application import application
from streamsieve.backends.prompt_renderer import prompt_renderer
from streamsieve.backends.upstream import Upstream
from streamsieve.parsers.chain import run
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

TEMPLATE = """\
{%- if tools %}{{ tools | tojson }}
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif -%}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}"""
TOOLS: Any = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}]
CALL = ["<tool_call>", '{"name": "ping"', ', "arguments": {}}', "</tool_call>"]
TOKENS = ["Let", " me", " see", ".", "</think>", "\n\n", "Sunny", *CALL]


class Completions:
    """A server that has `/v1/completions` and nothing else, as vLLM and llama.cpp serve it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.app = Starlette(routes=[Route("/v1/completions", self.complete, methods=["POST"])])

    async def complete(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body)
        if not isinstance(body.get("prompt"), str) or "messages" in body:
            return JSONResponse({"error": {"message": "prompt: required"}}, 400)
        if body.get("stream"):
            return StreamingResponse(self.events(body), media_type="text/event-stream")
        choice = {"index": 0, "text": "".join(TOKENS), "logprobs": self.logprobs(body, TOKENS), "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": len(TOKENS), "total_tokens": 3 + len(TOKENS)}
        return JSONResponse({**self.head("text_completion"), "choices": [choice], "usage": usage})

    async def events(self, body: Any) -> AsyncIterator[bytes]:
        for place, token in enumerate(TOKENS, 1):
            reason = "stop" if place == len(TOKENS) else None
            choice = {"index": 0, "text": token, "logprobs": self.logprobs(body, [token]), "finish_reason": reason}
            yield b"data: %b\n\n" % orjson.dumps({**self.head("text_completion"), "choices": [choice]})
        yield b"data: [DONE]\n\n"

    def head(self, kind: str) -> dict[str, Any]:
        return {"id": "cmpl-1", "object": kind, "created": 1, "model": "m"}

    def logprobs(self, body: Any, tokens: list[str]) -> Any:
        if body.get("logprobs") is None:
            return None
        return {
            "text_offset": [0] * len(tokens),
            "tokens": tokens,
            "token_logprobs": [-0.25] * len(tokens),
            "top_logprobs": [{token: -0.25} for token in tokens],
        }


@pytest.fixture
def model(tmp_path: Any) -> str:
    file = tmp_path / "model.jinja"
    file.write_text(TEMPLATE)
    return str(file)


@pytest.fixture(params=["proxy", "client"])
def client(request: Any, serve: Callable[[ASGIApp], str], model: str) -> Any:
    """An openai client, the completions server behind it, and how it was asked."""
    server = Completions()
    url = serve(server.app)
    options: Any = {"reasoning_parser": "qwen3", "tool_parser": "hermes", "render_prompt": prompt_renderer(model)}
    if request.param == "proxy":
        url = serve(application(Upstream(url), Settings(**options)))
        made = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    else:
        made = wrap(openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0), **options)
    with made:
        yield made, server


def test_a_server_without_chat_serves_chat(client: Any) -> None:
    made, server = client
    messages: Any = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho", "reasoning": "Hm"},
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
    ]
    reply = made.chat.completions.create(
        model="m",
        messages=messages,
        tools=TOOLS,
        max_completion_tokens=50,
        temperature=0.5,
        logprobs=True,
        top_logprobs=1,
    )
    message = reply.choices[0].message
    assert (message.reasoning, message.content) == ("Let me see.", "Sunny")
    assert message.tool_calls[0].function.name == "ping"
    assert reply.choices[0].finish_reason == "tool_calls"
    assert [one.token for one in reply.choices[0].logprobs.content][:5] == ["Let", " me", " see", ".", "Sunny"]
    assert reply.usage.completion_tokens_details.reasoning_tokens == 4
    asked = server.asked[0]
    assert asked["prompt"] == (
        json.dumps(TOOLS) + "\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>Hm</think>Ho<|im_end|>\n"
        "<|im_start|>user\nWeather?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert asked["add_special_tokens"] is False
    assert (asked["max_tokens"], asked["temperature"], asked["logprobs"]) == (50, 0.5, 1)
    assert not asked.keys() & {"messages", "tools", "max_completion_tokens", "top_logprobs"}


def test_and_streams_it(client: Any) -> None:
    made, _ = client
    messages: Any = [{"role": "user", "content": "Weather?"}]
    with made.chat.completions.stream(model="m", messages=messages, tools=TOOLS) as stream:
        reply = stream.get_final_completion()
    message = reply.choices[0].message
    assert (message.reasoning, message.content) == ("Let me see.", "Sunny")
    assert message.tool_calls[0].function.arguments == "{}"
    assert reply.object == "chat.completion"


def test_the_prompt_says_whether_there_is_thinking(client: Any) -> None:
    made, server = client
    messages: Any = [{"role": "user", "content": "Weather?"}]
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    message = made.chat.completions.create(model="m", messages=messages, extra_body=off).choices[0].message
    assert server.asked[0]["prompt"].endswith("<think>\n\n</think>\n\n")
    assert message.content.startswith("Let me see.")


def test_what_the_template_refuses_is_a_bad_request(client: Any) -> None:
    made, server = client
    with pytest.raises(openai.BadRequestError, match="messages"):
        made.chat.completions.create(model="m", messages=[{"role": "user", "content": 7}])
    assert server.asked == []


def test_an_error_of_the_server_passes(client: Any) -> None:
    made, _ = client
    with pytest.raises(openai.NotFoundError):
        made.models.list()


@pytest.mark.parametrize(
    ("source", "message"),
    [("nowhere.jinja", "there is no"), ("some/model", "render_prompt: some/model has no chat template")],
)
def test_a_model_without_a_template_is_refused_at_the_start(source: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        prompt_renderer(source)


def test_what_renders_must_be_a_function() -> None:
    with pytest.raises(ConfigurationError, match="render_prompt: a function"):
        Settings(render_prompt="model/")  # type: ignore[arg-type]


def test_what_is_no_completion_passes_as_it_came(model: str) -> None:
    settings = Settings(reasoning_parser="qwen3", render_prompt=prompt_renderer(model))
    request = orjson.dumps({"messages": [{"role": "user", "content": "Hi"}], "stream": True})
    for event in (b": ping\n\n", b'data: {"error": {"message": "full"}}\n\n', b"data: nonsense\n\n"):
        exchange = Exchange(settings, request, path="/v1/chat/completions")
        assert exchange.request_path == "/v1/completions"
        exchange.start(200, [(b"content-type", b"text/event-stream")])
        assert run(exchange.feed(event)) + run(exchange.close()) == event


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, None),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8, "max_tokens": 7}, 8),
        ({"max_completion_tokens": None, "max_tokens": 7}, 7),
    ],
)
def test_a_completion_is_as_long_as_a_chat_completion_would_be(model: str, given: Any, limit: int | None) -> None:
    """A completion that says nothing of it has 16 tokens; and an echo would be the whole prompt."""
    body = {"messages": [{"role": "user", "content": "Hi"}], "echo": True, **given}
    asked = json.loads(Exchange(Settings(render_prompt=prompt_renderer(model)), orjson.dumps(body)).request_body)
    assert asked["max_tokens"] is limit
    assert "echo" not in asked
