"""A chat completion in one JSON body."""

from __future__ import annotations

from collections.abc import Sequence

from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector, Message
from streamsieve.wire import json_text
from streamsieve.wire.delta import TRAYS, is_text, normalised, reasoning_names
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.parser import open_parser
from streamsieve.wire.settings import Settings


async def rewrite(body: bytes, settings: Settings, request: Request) -> bytes:
    """`body` with each choice's message sorted; the same bytes where there is nothing to sort."""
    try:
        completion = json_text.decode(body)
    except json_text.NotJsonError:
        return body
    choices = completion.get("choices") if isinstance(completion, dict) else None
    if not isinstance(completion, dict) or not isinstance(choices, list):
        return body
    sorted_choices = [await _choice(choice, settings, request) for choice in choices]
    if sorted_choices == choices:
        return body
    return json_text.encode({**completion, "choices": sorted_choices})


async def _choice(choice: object, settings: Settings, request: Request) -> object:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return choice
    names = reasoning_names(settings.reasoning_field, request.include_reasoning)
    text = message.get("content")
    if not settings.parses or not isinstance(text, str) or not is_text(message):
        return {**choice, "message": normalised(message, names)}
    reason = choice.get("finish_reason")
    reply = await _parse(text, reason if isinstance(reason, str) else None, settings, request)
    return {**choice, "message": _filled(message, reply, names), "finish_reason": reply.finish_reason}


async def _parse(text: str, reason: str | None, settings: Settings, request: Request) -> Message:
    parser = open_parser(settings, request, whole=True)
    collector = Collector()
    try:
        collector.add(await parser.feed(text))
        collector.add(await parser.finish(reason))
    finally:
        await parser.aclose()
    return collector.message(reason, request)


def _filled(message: JsonObject, reply: Message, names: Sequence[str]) -> JsonObject:
    """`message` with the trays of `reply`. `content` is there always, the other trays when they hold something."""
    filled: JsonObject = {name: value for name, value in message.items() if name not in TRAYS or name == "content"}
    filled["content"] = reply.content
    if reply.reasoning:
        filled |= dict.fromkeys(names, reply.reasoning)
    if reply.tool_calls:
        filled["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.tool_calls
        ]
    return filled
