"""Replies on their way out: streamed and whole, failing, silent, and left by their client."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import anyio
import httpx2
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamsieve.backends.openai_error import ApiError
from streamsieve.backends.reply import Piece, Reply, TokenLogprob, Usage
from streamsieve.backends.reply_response import ReplyResponse
from streamsieve.backends.reply_writer import ChatWriter, TextWriter

Choices = Sequence[Sequence[Piece | Exception | float]]
ANSWER = [Piece(text="Hel", token_ids=[1]), Piece(text="lo", token_ids=[2, 3], finish_reason="stop")]
FULL = ApiError(429, "full", "rate_limit_error", code="rate_limit_exceeded", headers={"retry-after": "3"})


async def choice(steps: Sequence[Piece | Exception | float]) -> AsyncGenerator[Piece, None]:
    """Yields pieces, waits for numbers of seconds, raises errors."""
    for step in steps:
        match step:
            case Piece():
                yield step
            case Exception():
                raise step
            case seconds:
                await anyio.sleep(seconds)


def answering(choices: Choices, usage: Usage | None = None, writer: Any = ChatWriter, **options: Any) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        reply = Reply([choice(steps) for steps in choices], lambda: usage)
        await ReplyResponse(reply, writer("m"), **{"stream": True, **options})(scope, receive, send)

    return app


async def ask(app: ASGIApp) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://x") as client:
        return await client.post("/", content=b"{}")


def events(answer: httpx2.Response) -> list[Any]:
    """The JSON events of a stream; that `[DONE]` comes last and once is asserted."""
    *found, done, rest = answer.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in found if event.startswith("data: ")]


async def test_a_stream_opens_each_choice_and_ends_in_the_usage() -> None:
    app = answering([ANSWER, ANSWER], Usage(prompt=5, completion=6, cached=4), include_usage=True)
    answer = await ask(app)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, last = events(answer)
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 6,
        "total_tokens": 11,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    for index in (0, 1):
        own = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == index]
        assert [one["delta"].get("role") for one in own] == ["assistant", None, None]
        assert "".join(one["delta"]["content"] for one in own) == "Hello"
        assert [one["token_ids"] for one in own] == [None, [1], [2, 3]]
        assert [one["finish_reason"] for one in own] == [None, None, "stop"]
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_whole_the_pieces_are_one_message() -> None:
    answer = (await ask(answering([ANSWER, ANSWER], stream=False))).json()
    assert answer["object"] == "chat.completion"
    assert [one["message"]["content"] for one in answer["choices"]] == ["Hello", "Hello"]
    assert [one["token_ids"] for one in answer["choices"]] == [[1, 2, 3]] * 2
    assert answer["usage"] is None


async def test_logprobs_in_the_shapes_of_both_apis() -> None:
    top = [TokenLogprob("a", b"a", -0.5), TokenLogprob("b", b"b", -1.5)]
    pieces = [
        Piece(text="a", logprobs=[TokenLogprob("a", b"a", -0.5, top)]),
        Piece(text="é", logprobs=[TokenLogprob("\ufffd", b"\xc3", -2.0), TokenLogprob("\ufffd", b"\xa9", -3.0)]),
    ]
    chat = (await ask(answering([pieces], stream=False))).json()["choices"][0]["logprobs"]["content"]
    assert chat[0] == {
        "token": "a",
        "logprob": -0.5,
        "bytes": [97],
        "top_logprobs": [
            {"token": "a", "logprob": -0.5, "bytes": [97]},
            {"token": "b", "logprob": -1.5, "bytes": [98]},
        ],
    }
    assert b"".join(bytes(one["bytes"]) for one in chat).decode() == "aé"
    texts = [chunk["choices"][0]["logprobs"] for chunk in events(await ask(answering([pieces], writer=TextWriter)))]
    assert [one["text_offset"] for one in texts] == [[0], [1, 2]]
    assert texts[0]["top_logprobs"] == [{"a": -0.5, "b": -1.5}]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("failure", "refusal", "status", "code"),
    [
        (FULL, lambda error: None, 429, "rate_limit_exceeded"),
        (KeyError("x"), lambda error: FULL, 429, "rate_limit_exceeded"),
        (KeyError("x"), lambda error: None, 500, "reply_failed"),
    ],
)
async def test_what_fails_before_the_first_text_has_its_status(
    stream: bool, failure: Exception, refusal: Callable[[Exception], ApiError | None], status: int, code: str
) -> None:
    answer = await ask(answering([[failure]], stream=stream, refusal=refusal))
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.headers.get("retry-after") == ("3" if status == 429 else None)
    assert "x" not in answer.json()["error"]["message"].split()


async def test_what_fails_later_is_an_event_of_the_stream() -> None:
    *chunks, last = events(await ask(answering([[ANSWER[0], FULL]])))
    assert [chunk["choices"][0]["delta"]["content"] for chunk in chunks] == ["", "Hel"]
    assert last == FULL.body()


async def test_silence_is_filled_with_comments() -> None:
    answer = await ask(answering([[0.1, *ANSWER]], keep_alive=0.03))
    assert answer.text.startswith(": keep-alive\n\n")
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in events(answer)) == "Hello"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_closes_the_choices(stream: bool) -> None:
    closed: list[int] = []
    outcomes: list[str] = []
    leaves = anyio.Event()

    class Observer:
        def piece(self, piece: Piece) -> None:
            leaves.set()

        def ended(self, outcome: str) -> None:
            outcomes.append(outcome)

    async def endless(index: int) -> AsyncGenerator[Piece, None]:
        try:
            while True:
                yield Piece(text="x")
                await anyio.sleep(0)
        finally:
            closed.append(index)

    async def receive() -> Message:
        await leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await anyio.sleep(0)

    response = ReplyResponse(Reply([endless(0), endless(1)]), ChatWriter("m"), stream=stream, observer=Observer())
    with anyio.fail_after(5):
        await response({"type": "http"}, receive, send)
    assert sorted(closed) == [0, 1]
    assert outcomes == ["cancelled"]


async def test_what_the_server_raises_leaves_as_itself() -> None:
    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError, match="gone"):
        await ReplyResponse(Reply([choice(ANSWER)]), ChatWriter("m"), stream=True)({"type": "http"}, receive, send)
