"""Writes a message as the model would: the way back from the three trays to text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format


def render(format: Format, message: Message, request: Request) -> str:
    """See `Format.render`."""
    if format.messages:
        return format.messages.write(message, request)
    reasoning = message.reasoning or ""
    written = ""
    if format.reasoning:
        written = format.reasoning.write(reasoning) if reasoning else ""
    written += message.content or ""
    if message.tool_calls and format.calls:
        written += format.calls.write(message.tool_calls, request)
    return written
