"""A whole chat completion as a whole response."""

from __future__ import annotations

from streamsieve.wire import json_text
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.responses.chat_reader import open_reader, refusal_of
from streamsieve.wire.responses.event_writer import EventWriter
from streamsieve.wire.responses.output import Output
from streamsieve.wire.responses.reply_object import ReplyObject, ending, usage_of


async def rewrite(body: bytes, prepared: Prepared) -> bytes:
    """The response for the completion `body`; the same bytes where they are none."""
    completion = json_text.decode_object(body)
    choice = _first_choice(completion)
    message = choice.get("message")
    if not isinstance(message, dict):
        return body
    reader = open_reader(prepared, whole=True)
    given = choice.get("finish_reason")
    reason = given if isinstance(given, str) and given else None
    output = Output(EventWriter(), prepared)
    try:
        output.add(await reader.read(message, choice))
        output.refuse(refusal_of(message))
        output.add(await (reader.end() if reason is None else reader.finish(reason)))
    finally:
        await reader.text.aclose()
    output.close("completed" if ending(reason) == "completed" else "incomplete")
    reply = ReplyObject(prepared.asked)
    reply.made_by(completion)
    reply.usage = usage_of(completion, reader.text.attribution)
    return json_text.encode(reply.ended(reason, output.items))


def _first_choice(completion: object) -> JsonObject:
    match completion:
        case {"choices": [dict(choice), *_]}:
            return choice
    return {}
