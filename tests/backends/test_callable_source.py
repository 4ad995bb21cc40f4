"""An async function as a backend, with the middleware on top and the openai client before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest
from starlette.types import ASGIApp

from streamsieve import SieveMiddleware
from streamsieve.backends.callable_source import Chat, callable_source
from streamsieve.backends.openai_error import ApiError
from streamsieve.backends.reply import Piece, Usage

Serve = Callable[[ASGIApp], str]
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Tides?"}]}
TOOLS: Any = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]
TEXTS = ["Hm.</th", "ink>I look.<tool_call>", '{"name": "get_tide", "arguments": {"port"', ': "Brest"}}</tool_call>']


def client(app: ASGIApp, serve: Serve, **options: Any) -> openai.OpenAI:
    url = serve(SieveMiddleware(app, reasoning_parser="qwen3", tool_parser="hermes", **options))
    return openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0)


async def writes_texts(chat: Chat) -> AsyncIterator[str]:
    for text in TEXTS:
        yield text


async def writes_ids(chat: Chat) -> AsyncIterator[tuple[str, list[int]] | Piece | Usage]:
    for number, text in enumerate(TEXTS):
        yield text, [number]
    yield Usage(prompt=3, completion=len(TEXTS))
    yield Piece(finish_reason="stop")


@pytest.mark.parametrize("generate", [writes_texts, writes_ids])
def test_raw_text_comes_out_sorted(generate: Any, serve: Serve) -> None:
    app = callable_source(generate, model="m")
    with client(app, serve) as asked:
        choice = asked.chat.completions.create(**ASK, tools=TOOLS).choices[0]
        streamed = list(asked.chat.completions.create(**ASK, tools=TOOLS, stream=True, n=2))
        assert [model.id for model in asked.models.list()] == ["m"]
    assert getattr(choice.message, "reasoning", None) == "Hm."
    assert choice.message.content == "I look."
    assert choice.finish_reason == "tool_calls"
    for index in (0, 1):
        deltas = [one for chunk in streamed for one in chunk.choices if one.index == index]
        assert "".join(one.delta.content or "" for one in deltas) == "I look."
        assert deltas[-1].finish_reason == "tool_calls"


def test_usage_counts_the_prompt_once(serve: Serve) -> None:
    with client(callable_source(writes_ids, model="m"), serve) as asked:
        usage = asked.chat.completions.create(**ASK, n=2).usage
        *_, last = asked.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (3, 8, 11)
    assert last.usage is not None
    assert last.usage.total_tokens == 7


def test_the_prompt_tail_reaches_the_parser(serve: Serve) -> None:
    async def generate(chat: Chat) -> AsyncIterator[str]:
        chat.prompt_ended_in("<|im_start|>assistant\n<think>\n\n</think>\n\n")
        yield f"Answer {chat.index} to {chat.messages[0]['content']} at {chat.body['temperature']}"

    with client(callable_source(generate, model="m"), serve) as asked:
        choices = asked.chat.completions.create(**ASK, n=2, temperature=0.5).choices
    assert [one.message.content for one in choices] == [f"Answer {index} to Tides? at 0.5" for index in (0, 1)]


def test_the_reason_for_the_end_is_the_sources(serve: Serve) -> None:
    async def generate(chat: Chat) -> AsyncIterator[str | Piece]:
        yield "</think>Cut"
        yield Piece(text=" off", finish_reason="length")

    with client(callable_source(generate, model="m"), serve) as asked:
        choice = asked.chat.completions.create(**ASK).choices[0]
    assert (choice.message.content, choice.finish_reason) == ("Cut off", "length")


def test_errors_reach_the_client(serve: Serve) -> None:
    async def generate(chat: Chat) -> AsyncIterator[str]:
        if chat.body.get("seed") == 1:
            raise ApiError(429, "Too much.", "rate_limit_error")
        yield "</think>a"
        raise RuntimeError("private words")

    with client(callable_source(generate, model="m"), serve) as asked:
        with pytest.raises(openai.RateLimitError, match="Too much"):
            asked.chat.completions.create(**ASK, seed=1, stream=True)
        with pytest.raises(openai.APIError, match="reply failed") as raised:
            list(asked.chat.completions.create(**ASK, stream=True))
        assert "private" not in str(raised.value)
        with pytest.raises(openai.InternalServerError):
            asked.chat.completions.create(**ASK)
        with pytest.raises(openai.BadRequestError, match="messages"):
            asked.chat.completions.create(model="m", messages=[])
