"""The Responses API on a real server, by the real `openai` client: what the upstream has of it, and what it has not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import openai
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from streamsieve.backends.loopback import loopback
from streamsieve.middleware import SieveMiddleware

CHUNK = 5
REQUEST = {
    "model": "m",
    "input": "Tide?",
    "tools": [
        {
            "type": "function",
            "name": "get_tide",
            "parameters": {"type": "object", "properties": {"port": {"type": "string"}, "days": {"type": "integer"}}},
            "strict": False,
        }
    ],
}
EXPECTED = ("The tide — I look.", "One moment. 😀", [("get_tide", {"port": "Bodø", "days": 2})], "completed")


@pytest.fixture
def chat_only(raw, chunk, completion):
    """An application that has chat completions and nothing else; what it was asked is kept."""
    asked = []

    async def deltas() -> AsyncIterator[bytes]:
        for start in range(0, len(raw), CHUNK):
            yield chunk(raw[start : start + CHUNK])
        yield chunk(finish="stop") + chunk(choices=[], usage={"prompt_tokens": 2, "completion_tokens": 9})
        yield b"data: [DONE]\n\n"

    async def answer(request: Request) -> Response:
        asked.append(await request.json())
        if asked[-1]["model"] == "busy":
            return JSONResponse({"error": {"message": "busy"}}, 429, {"retry-after": "0"})
        if asked[-1].get("stream"):
            return StreamingResponse(deltas(), media_type="text/event-stream")
        return JSONResponse(json.loads(completion(raw)))

    routes = [Route("/v1/chat/completions", answer, methods=["POST"])]
    return asked, routes


@pytest.fixture
def with_the_api(raw):
    """Routes of an application that has the Responses API, and leaves the text of its messages raw."""
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True}
    head |= {"tool_choice": "auto", "tools": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    item = {**message, "content": [{"type": "output_text", "text": raw, "annotations": []}]}
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}

    async def events() -> AsyncIterator[bytes]:
        deltas = [raw[start : start + CHUNK] for start in range(0, len(raw), CHUNK)]
        bodies = [
            {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}},
            {"type": "response.content_part.added", **where, "part": {"type": "output_text", "text": ""}},
            *({"type": "response.output_text.delta", **where, "delta": text, "logprobs": []} for text in deltas),
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {**head, "status": "completed", "output": [item]}},
        ]
        for number, body in enumerate(bodies):
            data = json.dumps({**body, "sequence_number": number}).encode()
            yield b"event: %b\ndata: %b\n\n" % (str(body["type"]).encode(), data)

    async def answer(request: Request) -> Response:
        if (await request.json()).get("stream"):
            return StreamingResponse(events(), media_type="text/event-stream")
        return JSONResponse({**head, "status": "completed", "output": [item]})

    return [Route("/v1/responses", answer, methods=["POST"])]


def trays(response: openai.types.responses.Response):
    reasoning = [part.text for item in response.output if item.type == "reasoning" for part in item.content]
    calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    return "".join(reasoning), response.output_text, calls, response.status


def translating(routes, **options) -> Starlette:
    return Starlette(routes=routes, middleware=[Middleware(SieveMiddleware, responses="translate", **options)])


@pytest.fixture(params=["upstream has the API", "upstream has chat completions"])
def app(request, chat_only, with_the_api, parsers):
    if request.param == "upstream has chat completions":
        return translating(chat_only[1], **parsers)
    return Starlette(routes=with_the_api, middleware=[Middleware(SieveMiddleware, **parsers)])


def test_the_client_finds_the_same_trays_streamed_and_not(app, served) -> None:
    with served(app) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        assert trays(client.responses.create(**REQUEST)) == EXPECTED
        *_, last = client.responses.create(**REQUEST, stream=True)
        assert trays(last.response) == EXPECTED
        with client.responses.stream(**REQUEST) as stream:
            told = [event.delta for event in stream if event.type == "response.output_text.delta"]
            assert trays(stream.get_final_response()) == EXPECTED
    assert "".join(told) == EXPECTED[1]


async def test_the_asynchronous_client_does_too(app) -> None:
    with loopback(app) as url:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            assert trays(await client.responses.create(**REQUEST)) == EXPECTED
            async with client.responses.stream(**REQUEST) as stream:
                assert trays(await stream.get_final_response()) == EXPECTED


def test_a_conversation_goes_on_with_what_came_out(chat_only, parsers) -> None:
    asked, routes = chat_only
    with (
        loopback(translating(routes, **parsers)) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        history = [{"role": "user", "content": "Tide?"}]
        response = client.responses.create(**{**REQUEST, "input": history})
        call = response.output[-1]
        history += [item.to_dict() for item in response.output]
        history.append({"type": "function_call_output", "call_id": call.call_id, "output": "low"})
        client.responses.create(**{**REQUEST, "input": history})
    user, assistant, tool = asked[-1]["messages"]
    assert user == {"role": "user", "content": "Tide?"}
    assert (assistant["reasoning"], assistant["content"]) == EXPECTED[:2]
    assert assistant["tool_calls"][0]["function"]["name"] == "get_tide"
    assert tool == {"role": "tool", "tool_call_id": assistant["tool_calls"][0]["id"], "content": "low"}


def test_errors_reach_the_client(chat_only, parsers) -> None:
    with (
        loopback(translating(chat_only[1], **parsers)) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=1) as client,
    ):
        with pytest.raises(openai.RateLimitError, match="busy"):
            client.responses.create(**{**REQUEST, "model": "busy"})
        assert [request["model"] for request in chat_only[0]] == ["busy", "busy"]
        with pytest.raises(openai.BadRequestError, match="web_search"):
            client.responses.create(**{**REQUEST, "tools": [{"type": "web_search"}]})
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            client.responses.create(**REQUEST, previous_response_id="resp_1")


def test_in_a_mount_the_path_changes_below_it(chat_only, parsers) -> None:
    inner = Starlette(routes=[Route("/chat/completions", chat_only[1][0].endpoint, methods=["POST"])])
    sieve = SieveMiddleware(inner, responses="translate", **parsers)
    app = Starlette(routes=[Mount("/v1", app=sieve)])
    with loopback(app) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        assert trays(client.responses.create(**REQUEST)) == EXPECTED
