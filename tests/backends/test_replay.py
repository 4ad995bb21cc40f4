"""The recorded replies as a chat completions server: what comes, in which shape, and what is refused."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionChunk
from starlette.types import ASGIApp

from streamsieve.backends.recording import Recording, recordings
from streamsieve.backends.replay import replay

Serve = Callable[[ASGIApp], str]
ASK: dict[str, Any] = {"model": "hermes", "messages": [{"role": "user", "content": "Tides?"}]}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "get_tide", "parameters": {}}}
SCENES = recordings()["hermes"].scenes


async def post(body: object, app: ASGIApp | None = None) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=app or replay())
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await client.post("/v1/chat/completions", content=content)


async def text(**body: object) -> str:
    content: str = (await post({**ASK, **body})).json()["choices"][0]["message"]["content"]
    return content


async def chunks(app: ASGIApp | None = None, **body: object) -> list[dict[str, Any]]:
    """The JSON events of a stream; that `[DONE]` comes last and once is asserted."""
    answer = await post({**ASK, "stream": True, **body}, app)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, done, rest = answer.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def pieces(events: list[dict[str, Any]], index: int = 0) -> list[str]:
    choices = [choice for event in events for choice in event.get("choices", ()) if choice["index"] == index]
    return [choice["delta"]["content"] for choice in choices if choice["delta"]["content"]]


@pytest.mark.parametrize(
    ("body", "scene"),
    [
        ({}, "answer"),
        ({"tools": []}, "answer"),
        ({"tools": [TOOL]}, "call"),
        ({"tools": [TOOL], "tool_choice": "none"}, "answer"),
        ({"tools": [TOOL], "tool_choice": "required"}, "call"),
        ({"tools": [TOOL], "messages": [{"role": "tool", "content": "04:12"}]}, "answer"),
        ({"model": "hermes:parallel"}, "parallel"),
        ({"replay": {"scene": "parallel"}}, "parallel"),
        ({"model": "hermes:answer", "replay": {"scene": "call"}}, "call"),
    ],
)
async def test_the_scene_that_is_played(body: dict[str, object], scene: str) -> None:
    assert await text(**body) == SCENES[scene]


@pytest.mark.parametrize("family", recordings())
async def test_every_family_answers_its_name_raw(family: str) -> None:
    recording = recordings()[family]
    assert await text(model=family) == recording.scenes["answer"]
    assert "".join(pieces(await chunks(model=family))) == recording.scenes["answer"]


async def test_given_text_is_played_instead() -> None:
    assert await text(replay={"raw": "é<think>\r\n"}) == "é<think>\r\n"
    assert pieces(await chunks(replay={"raw": ""})) == []


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_chunk_size_in_code_points(size: int) -> None:
    raw = "añ😀\u2028b\r\nc" * 3
    cut = [raw[start : start + size] for start in range(0, len(raw), size)]
    assert pieces(await chunks(replay={"raw": raw, "chunk": size})) == cut
    assert pieces(await chunks(replay(chunk=size), replay={"raw": raw})) == cut


async def test_the_shape_of_a_stream() -> None:
    events = await chunks(replay={"raw": "abcdef"}, stream_options={"include_usage": True})
    for event in events:
        ChatCompletionChunk.model_validate(event)
    assert {(event["id"], event["created"], event["model"]) for event in events} == {
        (events[0]["id"], events[0]["created"], "hermes")
    }
    assert [event["choices"] and event["choices"][0]["delta"] for event in events] == [
        {"role": "assistant", "content": ""},
        {"content": "abcd"},
        {"content": "ef"},
        {"content": ""},
        [],
    ]
    assert [event["choices"][0]["finish_reason"] for event in events[:-1]] == [None, None, None, "stop"]
    assert events[-1]["usage"] == {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    assert all("usage" not in event for event in events[:-1])


async def test_two_choices_in_turn() -> None:
    events = await chunks(n=2, replay={"raw": "abcdef"})
    assert [event["choices"][0]["index"] for event in events] == [0, 1] * 4
    assert pieces(events, 0) == pieces(events, 1) == ["abcd", "ef"]
    body = (await post({**ASK, "n": 3})).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]


async def test_the_shape_of_a_body() -> None:
    body = (await post({**ASK, "replay": {"raw": "abcdef"}})).json()
    choice = openai.types.chat.ChatCompletion.model_validate(body).choices[0]
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", "abcdef", "stop")
    assert body["usage"] == {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
async def test_the_token_limit_cuts(field: str) -> None:
    events = await chunks(replay={"raw": "abcdefghij"}, **{field: 2})
    assert ("".join(pieces(events)), events[-1]["choices"][0]["finish_reason"]) == ("abcdefgh", "length")
    events = await chunks(replay={"raw": "abcdefghij"}, **{field: 3})
    assert ("".join(pieces(events)), events[-1]["choices"][0]["finish_reason"]) == ("abcdefghij", "stop")


async def test_the_finish_reason_can_be_said() -> None:
    assert (await chunks(replay={"finish": "content_filter"}))[-1]["choices"][0]["finish_reason"] == "content_filter"


async def test_pacing() -> None:
    begun = time.monotonic()
    await chunks(replay={"raw": "abc", "chunk": 1, "delay": 0.05})
    assert time.monotonic() - begun >= 0.15
    begun = time.monotonic()
    await chunks(replay(delay=5.0), replay={"raw": "abc", "delay": 0})
    assert time.monotonic() - begun < 5


async def test_an_error_event_after_so_many_deltas() -> None:
    *events, error = await chunks(replay={"raw": "abcdefghij", "error": "event", "error_after": 2})
    assert pieces(events) == ["abcd", "efgh"]
    assert set(error["error"]) == {"message", "type", "param", "code"}


def test_a_dropped_connection_after_so_many_deltas(serve: Serve) -> None:
    got: list[bytes] = []
    body = {**ASK, "stream": True, "replay": {"raw": "abcdefgh", "error": "drop", "error_after": 1}}
    url = serve(replay()) + "/v1/chat/completions"
    with httpx2.stream("POST", url, json=body) as answer, pytest.raises(httpx2.RemoteProtocolError):
        deque(map(got.append, answer.iter_bytes()))
    assert b"abcd" in b"".join(got)
    assert b"efgh" not in b"".join(got)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_http_error_on_request(stream: bool) -> None:
    answer = await post({**ASK, "stream": stream, "replay": {"error": 429}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "replay_error")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
        (b"[]", None),
        ({}, "messages"),
        ({**ASK, "messages": []}, "messages"),
        ({**ASK, "messages": "x"}, "messages"),
        ({**ASK, "messages": [{"content": "x"}]}, "messages[0]"),
        ({**ASK, "model": None}, "model"),
        ({**ASK, "model": 1}, "model"),
        ({**ASK, "stream": "yes"}, "stream"),
        ({**ASK, "n": 0}, "n"),
        ({**ASK, "n": 129}, "n"),
        ({**ASK, "n": True}, "n"),
        ({**ASK, "max_tokens": 0}, "max_tokens"),
        ({**ASK, "max_tokens": 1.5}, "max_tokens"),
        ({**ASK, "stream_options": {"include_usage": True}}, "stream_options"),
        ({**ASK, "stream": True, "stream_options": 1}, "stream_options"),
        ({**ASK, "stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({**ASK, "replay": 1}, "replay"),
        ({**ASK, "replay": {"scenes": "call"}}, "replay"),
        ({**ASK, "replay": {"scene": "nothing"}}, "replay.scene"),
        ({**ASK, "replay": {"raw": 1}}, "replay.raw"),
        ({**ASK, "replay": {"raw": "\ud800"}}, "replay.raw"),
        ({**ASK, "replay": {"finish": "tool_calls"}}, "replay.finish"),
        ({**ASK, "replay": {"chunk": 0}}, "replay.chunk"),
        ({**ASK, "replay": {"delay": -1}}, "replay.delay"),
        ({**ASK, "replay": {"delay": True}}, "replay.delay"),
        ({**ASK, "replay": {"error": 200}}, "replay.error"),
        ({**ASK, "replay": {"error": "drop"}}, "replay.error"),
    ],
)
async def test_a_wrong_request_is_400_and_names_the_field(body: object, param: str | None) -> None:
    answer = await post(body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


@pytest.mark.parametrize("model", ["hermse", "hermes:nothing", "Hermes", ":call", "\ud800"])
async def test_an_unknown_model_is_404_and_the_names_are_told(model: str) -> None:
    answer = await post({**ASK, "model": model})
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == ("model", "model_not_found")
    assert "hermes" in error["message"]


def test_models_as_the_client_library_lists_them(serve: Serve) -> None:
    with openai.OpenAI(base_url=serve(replay()) + "/v1", api_key="x") as client:
        names = [model.id for model in client.models.list()]
        assert {"hermes", "hermes:call", "harmony", "glm45:parallel"} <= set(names)
        assert client.models.retrieve("harmony:call").id == "harmony:call"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("nothing")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("PUT", "/v1/models", 405)])
async def test_another_route_is_an_error_in_the_same_shape(method: str, path: str, status: int) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=replay()), base_url="http://x") as client:
        answer = await client.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, "unknown_url")


async def test_a_library_of_ones_own() -> None:
    mine = Recording("mine", "", "hermes", None, {"answer": "Hello."})
    answer = await post({**ASK, "model": "mine"}, replay(library={"mine": mine}))
    assert answer.json()["choices"][0]["message"]["content"] == "Hello."
