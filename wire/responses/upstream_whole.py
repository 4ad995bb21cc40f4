"""A whole response of an upstream that left raw text in its messages."""

from __future__ import annotations

from streamsieve.wire import json_text
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.responses.event_writer import EventWriter
from streamsieve.wire.responses.output import Output
from streamsieve.wire.responses.sorter import Sorter, finish_reason


async def rewrite(body: bytes, prepared: Prepared) -> bytes:
    """`body` with its output sorted; the same bytes where they are no response."""
    response = json_text.decode_object(body)
    items = response.get("output")
    if not isinstance(items, list):
        return body
    output = Output(EventWriter(), prepared)
    sorter = Sorter(prepared, output, whole=True)
    try:
        for index, item in enumerate(items):
            if isinstance(item, dict):
                await sorter.begin(index, item)
        await sorter.end(finish_reason(response))
    finally:
        await sorter.aclose()
    if output.items == items:
        return body
    return json_text.encode({**response, "output": output.items})
