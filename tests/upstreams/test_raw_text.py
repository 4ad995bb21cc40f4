"""Raw text out of upstreams as they are, through each of the ways, and what they would say without a dialect."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from streamsieve_standins.llama_cpp import LlamaCpp
from streamsieve_standins.ollama import Ollama
from streamsieve_standins.openai import OpenAi
from streamsieve_standins.sglang import Sglang
from streamsieve_standins.standin import StandIn
from streamsieve_standins.tgi import Tgi
from streamsieve_standins.vllm import Vllm

from streamsieve.wire.settings import Settings

TOOLS: Any = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]
MESSAGES: Any = [{"role": "user", "content": "Tides?"}]
CALL = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Bodø"}}\n</tool_call>'
WANTED = f"<think>Hm.</think>One moment. {CALL}"
UPSTREAMS: dict[str, type[StandIn]] = {
    "vllm": Vllm, "sglang": Sglang, "llama.cpp": LlamaCpp, "ollama": Ollama, "openai": OpenAi,
}  # fmt: skip
PARSERS: Any = {"reasoning_parser": "qwen3", "tool_parser": "hermes"}


async def reply(client: openai.AsyncOpenAI, stream: bool = False, **more: Any) -> Any:
    asked: Any = {"model": "m", "messages": MESSAGES, "tools": TOOLS, **more}
    if not stream:
        return (await client.chat.completions.create(**asked)).choices[0]
    async with client.chat.completions.stream(**asked) as events:
        return (await events.get_final_completion()).choices[0]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_three_trays(connect: Any, way: str, upstream: Any, stream: bool) -> None:
    there = UPSTREAMS[upstream](WANTED)
    choice = await reply(connect(way, there, Settings(upstream=upstream, **PARSERS)), stream)
    (call,) = choice.message.tool_calls
    assert (choice.message.reasoning, (choice.message.content or "").strip()) == ("Hm.", "One moment.")
    assert (call.function.name, call.function.arguments) == ("get_tide", '{"port": "Bodø"}')
    assert choice.finish_reason == "tool_calls"
    assert there.prompted[-1]["tools"] == TOOLS


async def test_tgi_sorts_calls_itself(connect: Any, way: str) -> None:
    there = Tgi("Hm.</think>One moment.")
    client = connect(way, there, Settings(upstream="tgi", **PARSERS))
    assert (await reply(client)).message.to_dict() == {
        "role": "assistant", "content": "One moment.", "reasoning": "Hm.",
    }  # fmt: skip
    assert (await reply(client, tool_choice="required")).message.tool_calls[0].function.name == "get_tide"
    with pytest.raises(openai.BadRequestError, match=r"cannot be enforced: .* tools or a response format"):
        await reply(client, response_format={"type": "json_object"})


@pytest.mark.parametrize("wanted", ["Ja.", "Hm.</think>Ja."])
async def test_ollama_sorts_thinking_itself(connect: Any, wanted: str) -> None:
    client = connect("client", Ollama(wanted), Settings(upstream="ollama", **PARSERS))
    assert (await reply(client)).message.content == "Ja."


async def test_what_vllm_says_without(connect: Any) -> None:
    """The request as clients write it: what a dialect is for."""
    for settings, words in [
        (Settings(tool_parser="hermes"), '"auto" tool choice requires --enable-auto-tool-choice'),
        (Settings(reasoning_parser="qwen3", upstream="vllm"), '"auto" tool choice requires'),
    ]:
        with pytest.raises(openai.BadRequestError, match=words):
            await reply(connect("client", Vllm(WANTED), settings))


@pytest.mark.parametrize("stand_in", [Vllm, Sglang])
async def test_markers_that_are_special_tokens(connect: Any, stand_in: Any) -> None:
    special = ("<|im_end|>", "<think>", "</think>")
    parsers: Any = {"reasoning_parser": "qwen3"}
    name: Any = stand_in.__name__.lower()
    lost = await reply(connect("client", stand_in(WANTED, special=special), Settings(**parsers)), tools=openai.omit)
    assert lost.message.content is None  # with its markers gone, all of it looks like thinking
    kept = await reply(
        connect("client", stand_in(WANTED, special=special), Settings(upstream=name, **parsers)), tools=openai.omit
    )
    assert (kept.message.reasoning, kept.message.content) == ("Hm.", f"One moment. {CALL}")


async def test_tools_stay_in_the_prompt_whatever_vllm_does_with_a_choice_of_none(connect: Any) -> None:
    there = Vllm(WANTED, excludes_tools=True)
    choice = await reply(connect("client", there, Settings(upstream="vllm", **PARSERS)))
    assert choice.message.tool_calls
    assert there.prompted[-1] == {"tools": TOOLS, "messages": MESSAGES, "tool_choice": None}


@pytest.mark.parametrize("upstream", ["vllm", "sglang", "openai"])
async def test_several_choices(connect: Any, upstream: Any) -> None:
    client = connect("client", UPSTREAMS[upstream](WANTED), Settings(upstream=upstream, **PARSERS))
    completion = await client.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS, n=3)
    assert [choice.message.tool_calls[0].function.name for choice in completion.choices] == ["get_tide"] * 3


@pytest.mark.parametrize("upstream", ["vllm", "sglang", "llama.cpp", "openai"])
async def test_no_reasoning_wanted(connect: Any, upstream: Any) -> None:
    there = UPSTREAMS[upstream](WANTED)
    choice = await reply(
        connect("client", there, Settings(upstream=upstream, **PARSERS)), extra_body={"include_reasoning": False}
    )
    assert not hasattr(choice.message, "reasoning")
    assert choice.message.tool_calls


EARLIER: Any = [
    {"role": "user", "content": "Tides?"},
    {"role": "assistant", "content": "a", "reasoning": "Hm."},
    {"role": "user", "content": "And?"},
    {"role": "assistant", "content": "b", "reasoning_content": "Hm."},
    {"role": "user", "content": "And now?"},
]


@pytest.mark.parametrize(
    ("upstream", "field"),
    [
        ("vllm", "reasoning"),
        ("sglang", "reasoning_content"),
        ("llama.cpp", "reasoning_content"),
        ("ollama", "reasoning"),
    ],
)
async def test_earlier_reasoning_reaches_the_template(connect: Any, upstream: Any, field: str) -> None:
    there = UPSTREAMS[upstream](WANTED)
    await reply(connect("client", there, Settings(upstream=upstream, **PARSERS)), messages=EARLIER)
    assert [message.get(field) for message in there.prompted[-1]["messages"]] == [None, "Hm.", None, "Hm.", None]


@pytest.mark.parametrize("upstream", ["vllm", "llama.cpp"])
async def test_the_final_message_goes_on(connect: Any, upstream: Any) -> None:
    there = UPSTREAMS[upstream](" is high.")
    choice = await reply(
        connect("client", there, Settings(upstream=upstream, **PARSERS)),
        tools=openai.omit,
        messages=[*MESSAGES, {"role": "assistant", "content": "The tide"}],
        extra_body={"continue_final_message": True},
    )
    assert (choice.message.content, hasattr(choice.message, "reasoning")) == (" is high.", False)
