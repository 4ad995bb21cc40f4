"""A whole response of an upstream that left raw text in its messages."""

from __future__ import annotations

from streamsieve.parsers.request import Request
from streamsieve.wire import json_text
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.responses.event_writer import EventWriter
from streamsieve.wire.responses.output import Output
from streamsieve.wire.responses.sorter import Sorter, finish_reason
from streamsieve.wire.responses.text_kind import reasoning_kind
from streamsieve.wire.settings import Settings


async def rewrite(body: bytes, settings: Settings, request: Request, asked: JsonObject) -> bytes:
    """`body` with its output sorted; the same bytes where they are no response. `asked`: the client's request."""
    try:
        response = json_text.decode(body)
    except json_text.NotJsonError:
        return body
    items = response.get("output") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(items, list):
        return body
    sorter = Sorter(settings, request, Output(EventWriter(), reasoning_kind(asked)), whole=True)
    try:
        for index, item in enumerate(items):
            if isinstance(item, dict):
                await sorter.begin(index, item)
        await sorter.end(finish_reason(response))
    finally:
        await sorter.aclose()
    if sorter.output.items == items:
        return body
    return json_text.encode({**response, "output": sorter.output.items})
