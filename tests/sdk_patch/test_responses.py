"""The Responses API under the wrapped client, whether the upstream has it or not."""

from __future__ import annotations

import json

import openai
import pytest
from starlette.responses import JSONResponse, StreamingResponse

from streamsieve import wrap

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


def trays(response):
    items = [item.to_dict() for item in response.output]
    reasoning = [part["text"] for item in items if item["type"] == "reasoning" for part in item["content"]]
    calls = [(item["name"], json.loads(item["arguments"])) for item in items if item["type"] == "function_call"]
    return "".join(reasoning), response.output_text, calls, response.status


@pytest.fixture(params=["parse", "translate"])
def responses(request, upstream):
    """How the client is set, before an upstream that is as this needs."""
    if request.param == "parse":
        upstream.answer = lambda asked: answer(upstream.raw, json.loads(asked._body).get("stream"))
    yield request.param
    path = {"parse": "/v1/responses", "translate": "/v1/chat/completions"}[request.param]
    assert {asked.url.path for asked in upstream.asked} == {path}


def answer(raw, streamed):
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True}
    head |= {"tool_choice": "auto", "tools": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    item = {**message, "content": [{"type": "output_text", "text": raw, "annotations": []}]}
    done = {**head, "status": "completed", "output": [item]}
    if not streamed:
        return JSONResponse(done)
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    bodies = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}},
        *({"type": "response.output_text.delta", **where, "delta": text, "logprobs": []} for text in raw),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    events = [f"event: {body['type']}\ndata: {json.dumps({**body, 'sequence_number': 0})}\n\n" for body in bodies]
    return StreamingResponse(iter(events), media_type="text/event-stream")


def test_the_synchronous_client(responses, client, parsers):
    wrapped = wrap(client, responses=responses, **parsers)
    assert trays(wrapped.responses.create(**REQUEST)) == EXPECTED
    *_, last = wrapped.responses.create(**REQUEST, stream=True)
    assert trays(last.response) == EXPECTED
    with wrapped.responses.stream(**REQUEST) as stream:
        assert trays(stream.get_final_response()) == EXPECTED


async def test_the_asynchronous_client(responses, async_client, parsers):
    wrapped = wrap(async_client, responses=responses, **parsers)
    assert trays(await wrapped.responses.create(**REQUEST)) == EXPECTED
    async with wrapped.responses.stream(**REQUEST) as stream:
        assert trays(await stream.get_final_response()) == EXPECTED


def test_streams_give_their_connection_back(upstream, client, parsers):
    wrapped = wrap(client, responses="translate", **parsers)
    for _ in range(3):
        assert list(wrapped.responses.create(**REQUEST, stream=True))[-1].type == "response.completed"
    assert len(upstream.connections) == 1


def test_a_refusal_is_a_bad_request(upstream, client, parsers):
    wrapped = wrap(client, responses="translate", **parsers)
    with pytest.raises(openai.BadRequestError, match="stored"):
        wrapped.responses.create(**REQUEST, previous_response_id="resp_1")
    assert upstream.asked == []
