"""Every case of the contract, both ways round: the middleware before the plain client, and the wrapped client
before the raw engine; streamed and not; compared as what the SDK makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from streamsieve.middleware import SieveMiddleware
from streamsieve.parsers.conformance.cases import Answer, Case, judge, read, trays
from streamsieve.parsers.results import Message, ToolCall
from streamsieve.sdk_patch import SieveTransport, reasoning
from streamsieve.wire.settings import Settings

CASES = Path(__file__).parents[1] / "cases"
FILES = sorted(path.name for path in CASES.glob("*.jsonl"))
DELTA = 3
"""Characters a delta."""


def cases(name: str) -> Iterator[tuple[Case, dict[str, Any], Settings]]:
    """The cases of a file, with the request of each and settings for it; these cannot hold a response template."""
    for line in (CASES / name).read_text(encoding="utf-8").splitlines():
        case, fields = read(line), json.loads(line)
        if case.response_template is not None or case.expect is None:
            continue
        settings = Settings(
            tool_parser=case.tool_parser,
            reasoning_parser=case.reasoning_parser,
            prompt_tail=case.request.prompt_tail,
        )
        body = {"tools": fields.get("tools") or [], **(fields.get("request") or {})}
        yield case, {"model": "m", "messages": [], "extra_body": body}, settings


@pytest.fixture
def answer(events, body, done):
    """The bytes and the content type of an engine's answer to a case."""

    def made(case: Case, streamed: bool) -> tuple[list[bytes], str]:
        if not streamed:
            completion = body(case.raw)
            completion["choices"][0]["finish_reason"] = case.engine_finish
            return [json.dumps(completion).encode()], "application/json"
        deltas = [case.raw[start : start + DELTA] for start in range(0, len(case.raw), DELTA)]
        return [*map(events, deltas), events(finish=case.engine_finish), done], "text/event-stream"

    return made


def gathered(answered: Any, streamed: bool) -> Answer:
    """The trays of what the SDK hands out."""
    if streamed:
        state = ChatCompletionStreamState()
        for chunk in answered:
            state.handle_chunk(chunk)
        answered = state.current_completion_snapshot
    (choice,) = answered.choices
    calls = [ToolCall(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    return trays(Message(reasoning(choice.message), choice.message.content or None, calls, choice.finish_reason))


def differences(case: Case, got: Answer, streamed: bool) -> list[str]:
    expected = case.expect_stream if streamed else case.expect
    return [f"{case.id}: {difference}" for difference in judge(case, expected, got)]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_the_wrapped_client(name, streamed, answer, http):
    found = []
    for case, request, settings in cases(name):
        pieces, kind = answer(case, streamed)
        content = b"".join(pieces)
        inner = http.MockTransport(
            lambda _, content=content, kind=kind: http.Response(200, headers={"content-type": kind}, content=content)
        )
        transport = SieveTransport(inner, settings=settings)
        with openai.OpenAI(base_url="http://test", api_key="k", http_client=http.Client(transport=transport)) as client:
            got = gathered(client.chat.completions.create(**request, stream=streamed), streamed)
        found += differences(case, got, streamed)
    assert found == []


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", FILES)
async def test_the_middleware(name, streamed, answer, http):
    found = []
    for case, request, settings in cases(name):
        pieces, kind = answer(case, streamed)

        async def engine(scope, receive, send, pieces=pieces, kind=kind):
            headers = [(b"content-type", kind.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        transport = http.ASGITransport(SieveMiddleware(engine, settings=settings))
        http_client = http.AsyncClient(transport=transport)
        async with openai.AsyncOpenAI(base_url="http://test", api_key="k", http_client=http_client) as client:
            answered = await client.chat.completions.create(**request, stream=streamed)
            got = gathered([chunk async for chunk in answered] if streamed else answered, streamed)
        found += differences(case, got, streamed)
    assert found == []
