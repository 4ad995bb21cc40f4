"""openai-agents: an `Agent` on chat completions, run by `Runner`."""

from __future__ import annotations

import asyncio
import json

from agents import Agent, ModelResponse, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from turns import ANSWERED, PROMPT, Turn, drive, turn

set_tracing_disabled(True)


@function_tool
def get_tide(port: str, days: int) -> str:
    """The tides of a port."""
    return ANSWERED


@function_tool
def list_ports() -> str:
    """The ports that have tides."""
    return ANSWERED


def whole(base_url: str, model: str) -> Turn:
    return _turn(asyncio.run(ask(base_url, model)))


def streamed(base_url: str, model: str) -> Turn:
    return _turn(asyncio.run(stream(base_url, model)))


async def ask(base_url: str, model: str) -> list[ModelResponse]:
    async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
        agent = Agent(name="Pilot", tools=[get_tide, list_ports], model=OpenAIChatCompletionsModel(model, client))
        result = await Runner.run(agent, PROMPT)
        return result.raw_responses


async def stream(base_url: str, model: str) -> list[ModelResponse]:
    async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
        agent = Agent(name="Pilot", tools=[get_tide, list_ports], model=OpenAIChatCompletionsModel(model, client))
        result = Runner.run_streamed(agent, PROMPT)
        async for _ in result.stream_events():
            continue
        return result.raw_responses


def _turn(responses: list[ModelResponse]) -> Turn:
    first, *rest = responses
    return turn(
        reasoning=_text(first, "reasoning"),
        content=_text(first, "message"),
        calls=[(item.name, json.loads(item.arguments)) for item in first.output if item.type == "function_call"],
        finish_reason=None,
        then=_text(rest[-1], "message") if rest else None,
    )


def _text(response: ModelResponse, kind: str) -> str:
    """Of reasoning: `reasoning_content` arrives as the item's summary, `reasoning` as its content."""
    items = [item for item in response.output if item.type == kind]
    parts = [part for item in items for part in (*getattr(item, "summary", ()), *(item.content or ()))]
    return "".join(part.text for part in parts)


drive(whole, streamed)
