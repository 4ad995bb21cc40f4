"""Every way to ask for a completion gives the same three trays, synchronous or not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pydantic
import pytest

from streamsieve.sdk_patch import reasoning, wrap

EXPECTED = ("The tide — I look.", "One moment. 😀", [("get_tide", {"port": "Bodø", "days": 2})], "tool_calls")


def trays(completion: Any) -> tuple[object, ...]:
    (choice,) = completion.choices
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ()]
    return reasoning(choice.message), choice.message.content, calls, choice.finish_reason


class Gathered:
    """Chunks put together as an application does it that knows only the OpenAI API."""

    def __init__(self) -> None:
        self.thought = self.content = ""
        self.calls: dict[int, list[str]] = {}
        self.finish: str | None = None

    def add(self, chunk: Any) -> None:
        for choice in chunk.choices:
            self.thought += reasoning(choice.delta) or ""
            self.content += choice.delta.content or ""
            self.finish = choice.finish_reason or self.finish
            for call in choice.delta.tool_calls or ():
                if call.id:
                    self.calls[call.index] = [call.function.name, ""]
                self.calls[call.index][1] += call.function.arguments or ""

    def add_line(self, line: str) -> None:
        if line.startswith("data: {"):
            self.add(openai.types.chat.ChatCompletionChunk.model_validate_json(line.removeprefix("data: ")))

    def trays(self) -> tuple[object, ...]:
        calls = [(name, json.loads(arguments)) for name, arguments in self.calls.values()]
        return self.thought, self.content, calls, self.finish


def create(client, chat):
    return trays(client.chat.completions.create(**chat))


def create_stream(client, chat):
    gathered = Gathered()
    for chunk in client.chat.completions.create(**chat, stream=True):
        gathered.add(chunk)
    return gathered.trays()


def stream_helper(client, chat):
    with client.chat.completions.stream(**chat) as stream:
        return trays(stream.get_final_completion())


def parse(client, chat):
    completion = client.chat.completions.parse(**chat)
    (call,) = completion.choices[0].message.tool_calls
    assert call.function.parsed_arguments == {"port": "Bodø", "days": 2}
    return trays(completion)


def raw_response(client, chat):
    response = client.chat.completions.with_raw_response.create(**chat)
    assert int(response.headers["content-length"]) == len(response.content)
    return trays(response.parse())


def raw_response_stream(client, chat):
    gathered = Gathered()
    for chunk in client.chat.completions.with_raw_response.create(**chat, stream=True).parse():
        gathered.add(chunk)
    return gathered.trays()


def streaming_response(client, chat):
    with client.chat.completions.with_streaming_response.create(**chat) as response:
        return trays(response.parse())


def streaming_response_lines(client, chat):
    gathered = Gathered()
    with client.chat.completions.with_streaming_response.create(**chat, stream=True) as response:
        for line in response.iter_lines():
            gathered.add_line(line)
    return gathered.trays()


def with_options(client, chat):
    return create_stream(client.with_options(timeout=5, max_retries=1), chat)


def copy(client, chat):
    return create(client.copy(), chat)


SURFACES = [
    create,
    create_stream,
    stream_helper,
    parse,
    raw_response,
    raw_response_stream,
    streaming_response,
    streaming_response_lines,
    with_options,
    copy,
]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("options", [{}, {"reasoning_field": "reasoning_content"}, {"deliver": "complete"}], ids=str)
def test_the_trays_of_the_synchronous_client(surface, options, client, chat, parsers):
    assert surface(wrap(client, **parsers, **options), chat) == EXPECTED


async def async_create(client, chat):
    return trays(await client.chat.completions.create(**chat))


async def async_create_stream(client, chat):
    gathered = Gathered()
    async for chunk in await client.chat.completions.create(**chat, stream=True):
        gathered.add(chunk)
    return gathered.trays()


async def async_stream_helper(client, chat):
    async with client.chat.completions.stream(**chat) as stream:
        return trays(await stream.get_final_completion())


async def async_parse(client, chat):
    return trays(await client.chat.completions.parse(**chat))


async def async_raw_response(client, chat):
    response = await client.chat.completions.with_raw_response.create(**chat)
    assert int(response.headers["content-length"]) == len(response.content)
    return trays(response.parse())


async def async_streaming_response(client, chat):
    async with client.chat.completions.with_streaming_response.create(**chat) as response:
        return trays(await response.parse())


async def async_streaming_response_lines(client, chat):
    gathered = Gathered()
    async with client.chat.completions.with_streaming_response.create(**chat, stream=True) as response:
        async for line in response.iter_lines():
            gathered.add_line(line)
    return gathered.trays()


async def async_with_options(client, chat):
    return await async_create_stream(client.with_options(timeout=5), chat)


ASYNC_SURFACES = [
    async_create,
    async_create_stream,
    async_stream_helper,
    async_parse,
    async_raw_response,
    async_streaming_response,
    async_streaming_response_lines,
    async_with_options,
]


@pytest.mark.parametrize("surface", ASYNC_SURFACES)
async def test_the_trays_of_the_asynchronous_client(surface, async_client, chat, parsers):
    assert await surface(wrap(async_client, **parsers), chat) == EXPECTED


def test_structured_output_is_parsed_from_the_content_alone(upstream, client, parsers):
    class Tide(pydantic.BaseModel):
        port: str

    upstream.raw = '<think>\nJSON, then.\n</think>\n\n{"port": "Brest"}'
    messages = [{"role": "user", "content": "Tide?"}]
    wrapped = wrap(client, **parsers)
    message = wrapped.chat.completions.parse(model="m", messages=messages, response_format=Tide).choices[0].message
    assert message.parsed == Tide(port="Brest")
    assert reasoning(message) == "JSON, then."


def test_the_message_goes_back_into_the_history(upstream, client, chat, parsers):
    wrapped = wrap(client, **parsers)
    message = wrapped.chat.completions.create(**chat).choices[0].message
    again = [*chat["messages"], message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "4 m"}]
    wrapped.chat.completions.create(**{**chat, "messages": again})
    sent = json.loads(upstream.asked[-1]._body)["messages"][1]
    assert sent["reasoning"] == "The tide — I look."
    assert json.loads(sent["tool_calls"][0]["function"]["arguments"]) == {"port": "Bodø", "days": 2}


async def test_many_streams_at_once_keep_apart(upstream, async_client, chat, parsers):
    wrapped = wrap(async_client, **parsers)
    found = await asyncio.gather(*(async_create_stream(wrapped, chat) for _ in range(20)))
    assert found == [EXPECTED] * 20
