"""Real servers on loopback, real frameworks inside, the real `openai` client outside."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import openai
import pytest
from fastapi import FastAPI
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from streamsieve.backends.loopback import loopback
from streamsieve.middleware import SieveMiddleware

PATH = "/v1/chat/completions"
CHUNK = 5


@pytest.fixture
def endpoint(raw, chunk, completion) -> Callable[[Request], object]:
    """Answers with the raw reply, in a few characters a delta."""

    async def deltas() -> AsyncIterator[bytes]:
        for start in range(0, len(raw), CHUNK):
            yield chunk(raw[start : start + CHUNK])
        yield chunk(finish="stop") + chunk(choices=[], usage={"completion_tokens": 9})
        yield b"data: [DONE]\n\n"

    async def answer(request: Request) -> Response:
        if (await request.json())["stream"]:
            return StreamingResponse(deltas(), media_type="text/event-stream")
        return JSONResponse(json.loads(completion(raw)))

    return answer


def in_starlette(endpoint, **options):
    return Starlette(
        routes=[Route(PATH, endpoint, methods=["POST"])], middleware=[Middleware(SieveMiddleware, **options)]
    )


def in_fastapi(endpoint, **options):
    async def answer(request: Request) -> Response:
        return await endpoint(request)

    async def pass_on(request, call_next):
        return await call_next(request)

    app = FastAPI()
    app.post(PATH)(answer)
    app.add_middleware(SieveMiddleware, **options)
    app.add_middleware(GZipMiddleware, minimum_size=10)
    app.middleware("http")(pass_on)
    return app


def in_a_mount(endpoint, **options):
    inner = Starlette(routes=[Route("/chat/completions", endpoint, methods=["POST"])])
    return Starlette(routes=[Mount("/v1", app=SieveMiddleware(inner, **options))])


def outside_a_mount(endpoint, **options):
    inner = Starlette(routes=[Route("/chat/completions", endpoint, methods=["POST"])])
    return SieveMiddleware(Starlette(routes=[Mount("/v1", app=inner)]), **options)


EXPECTED = ("The tide — I look.", "One moment. 😀", [("get_tide", {"port": "Bodø", "days": 2})], "tool_calls")


def trays(completion: openai.types.chat.ChatCompletion):
    (choice,) = completion.choices
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ()]
    return choice.message.reasoning, choice.message.content, calls, choice.finish_reason


@pytest.mark.parametrize("build", [in_starlette, in_fastapi, in_a_mount, outside_a_mount])
def test_the_client_finds_the_same_trays_streamed_and_not(build, served, endpoint, parsers, chat):
    request = json.loads(chat())
    del request["stream"]
    with (
        served(build(endpoint, **parsers)) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        assert trays(client.chat.completions.create(**request, stream=False)) == EXPECTED
        with client.chat.completions.stream(**request) as stream:
            final = stream.get_final_completion()
        assert trays(final) == EXPECTED
        assert final.usage.completion_tokens == 9


async def test_the_asynchronous_client_does_too(endpoint, parsers, chat):
    request = json.loads(chat())
    del request["stream"]
    with loopback(in_starlette(endpoint, **parsers)) as url:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            assert trays(await client.chat.completions.create(**request, stream=False)) == EXPECTED
            async with client.chat.completions.stream(**request) as stream:
                assert trays(await stream.get_final_completion()) == EXPECTED


def test_events_written_by_fastapi_are_read(raw, chunk, parsers, chat, served):
    """Its `EventSourceResponse` writes the events itself, in a task of its own."""

    async def answer() -> AsyncIterator[ServerSentEvent]:
        events = [chunk(raw[start : start + CHUNK]) for start in range(0, len(raw), CHUNK)]
        for event in [*events, chunk(finish="stop"), b"data: [DONE]\n\n"]:
            yield ServerSentEvent(raw_data=event.decode().removeprefix("data: ").strip())

    app = FastAPI()
    app.post(PATH, response_class=EventSourceResponse)(answer)
    app.add_middleware(SieveMiddleware, **parsers)
    request = json.loads(chat())
    del request["stream"]
    with (
        served(app) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
        client.chat.completions.stream(**request) as stream,
    ):
        assert trays(stream.get_final_completion()) == EXPECTED
