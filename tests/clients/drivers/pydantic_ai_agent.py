"""pydantic-ai: an `Agent` that runs its tools."""

from __future__ import annotations

from collections.abc import AsyncIterable

from pydantic_ai import Agent, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from turns import ANSWERED, PROMPT, Turn, drive, turn


def get_tide(port: str, days: int) -> str:
    """The tides of a port."""
    return ANSWERED


def list_ports() -> str:
    """The ports that have tides."""
    return ANSWERED


def whole(base_url: str, model: str) -> Turn:
    provider = OpenAIProvider(base_url=base_url, api_key="none")
    agent = Agent(OpenAIChatModel(model, provider=provider), tools=[get_tide, list_ports])
    return _turn(agent.run_sync(PROMPT).all_messages())


def streamed(base_url: str, model: str) -> Turn:
    provider = OpenAIProvider(base_url=base_url, api_key="none")
    agent = Agent(OpenAIChatModel(model, provider=provider), tools=[get_tide, list_ports])
    return _turn(agent.run_sync(PROMPT, event_stream_handler=_watch).all_messages())


async def _watch(context, events: AsyncIterable) -> None:
    """A handler of events makes the agent stream."""
    async for _ in events:
        continue


def _turn(messages) -> Turn:
    first, *rest = [message for message in messages if isinstance(message, ModelResponse)]
    return turn(
        reasoning=_text(first, ThinkingPart),
        content=_text(first, TextPart),
        calls=[(part.tool_name, part.args_as_dict()) for part in first.parts if isinstance(part, ToolCallPart)],
        finish_reason=first.provider_details["finish_reason"],
        then=_text(rest[-1], TextPart) if rest else None,
    )


def _text(response: ModelResponse, kind: type[TextPart | ThinkingPart]) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, kind))


drive(whole, streamed)
