"""A chat completion in one JSON body."""

from __future__ import annotations

from collections.abc import Sequence

from streamsieve.parsers.events import Reasoning
from streamsieve.parsers.results import Collector, Message
from streamsieve.wire import json_text
from streamsieve.wire.attribution import Told, has_tokens, without_tokens
from streamsieve.wire.chat.delta import TRAYS, index_of, is_text, normalised, reasoning_names
from streamsieve.wire.chat.unasked_ids import without_ids
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.text_reader import open_text
from streamsieve.wire.usage import with_reasoning_tokens


async def rewrite(body: bytes, prepared: Prepared) -> bytes:
    """`body` with each choice's message sorted; the same bytes where there is nothing to sort."""
    completion = json_text.decode_object(body)
    choices = completion.get("choices")
    if not isinstance(choices, list):
        return body
    replies = [_Reply(choice, prepared) for choice in choices]
    sorted_choices = [await reply.choice() for reply in replies]
    counted = with_reasoning_tokens(completion, [reply.reasoning_tokens for reply in replies])
    if not prepared.keep_ids:
        counted = without_ids(counted)
        sorted_choices = [without_ids(choice) if isinstance(choice, dict) else choice for choice in sorted_choices]
    if sorted_choices == choices and counted is completion:
        return body
    return json_text.encode({**counted, "choices": sorted_choices})


class _Reply:
    """One choice."""

    def __init__(self, given: object, prepared: Prepared) -> None:
        self.reasoning_tokens: int | None = None
        self._given = given
        self._prepared = prepared
        self._settings = prepared.settings
        self._request = prepared.request

    async def choice(self) -> object:
        """The choice that the client gets."""
        given, settings = self._given, self._settings
        message = given.get("message") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not isinstance(message, dict):
            return given
        names = reasoning_names(settings.reasoning_field, self._request.include_reasoning)
        text = message.get("content")
        if not settings.parses or not isinstance(text, str) or not is_text(message):
            passed = normalised(message, names)
            if not names and passed != message:  # it had thinking, and some of these may be its tokens
                given = without_tokens(given)
            return {**given, "message": passed}
        reason = given.get("finish_reason")
        reply, told = await self._parse(text, reason if isinstance(reason, str) else None)
        said = self._said(given, told) if has_tokens(given) else {}
        if not names:  # what else tells of tokens, in a shape that is not ours to read, may tell of the thinking's
            given = without_tokens(given)
        return {**given, **said, "message": _filled(message, reply, names), "finish_reason": reply.finish_reason}

    async def _parse(self, text: str, reason: str | None) -> tuple[Message, list[Told]]:
        settings = self._settings
        given = self._given if isinstance(self._given, dict) else {}
        reader = open_text(self._prepared, index_of(given), whole=True)
        collector = Collector()
        try:
            told = await reader.feed(text, given)
            told += await reader.finish(reason)
        finally:
            await reader.aclose()
        reader.rest()
        if reader.attribution and settings.tells_reasoning:
            self.reasoning_tokens = reader.attribution.reasoning_tokens
        collector.add(one.event for one in told if one.event)
        return collector.message(reason, self._request), told

    def _said(self, given: JsonObject, told: Sequence[Told]) -> JsonObject:
        """What is said of the text: of that which the client gets."""
        shown = [one for one in told if self._request.include_reasoning or not isinstance(one.event, Reasoning)]
        tokens = [token for one in shown for token in one.tokens if self._request.include_reasoning or token.count == 1]
        said: JsonObject = {}
        logprobs = given.get("logprobs")
        if isinstance(logprobs, dict) and logprobs.get("content"):
            beside = logprobs if self._request.include_reasoning else {}
            said["logprobs"] = {**beside, "content": [entry for token in tokens for entry in token.logprobs]}
        if given.get("token_ids") and not self._request.include_reasoning:
            said["token_ids"] = [one for token in tokens for one in token.ids]
        return said


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
