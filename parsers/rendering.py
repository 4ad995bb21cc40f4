"""Writes a message as the model would: the way back from the three trays to text."""

from __future__ import annotations

import json
import reprlib
from typing import TYPE_CHECKING

from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format


def render(format: Format, message: Message, request: Request) -> str:
    """See `Format.render`. What was written is read back, which is the only sure test of it."""
    if format.messages:
        written = format.messages.write(message, request)
    else:
        written = format.reasoning.of(request).write(message.reasoning or "", request) if format.reasoning else ""
        written += format.reasoning.write_answer(message.content or "") if format.reasoning else message.content or ""
        if message.tool_calls and format.calls:
            written += format.calls.write(message.tool_calls, request)
    understood = _said(read(format, [written], request, whole=True))
    if understood != _said(message):
        raise Inexpressible(f"{format.name} cannot say this message: it would be read as {reprlib.repr(understood)}")
    return written


def _said(message: Message) -> tuple[str | None, str | None, list[tuple[str, object]]]:
    """What of a message has to come back: arguments as values, since not every format writes them as JSON."""
    calls = [(call.name, _value(call.arguments)) for call in message.tool_calls]
    return message.reasoning or None, message.content or None, calls


def _value(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
