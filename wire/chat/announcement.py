"""Calls told of once more, whole, the moment they are complete, for clients that start them while the reply goes on."""

from __future__ import annotations

from streamsieve.parsers.events import CallArguments, CallEnd, CallStart, Event
from streamsieve.wire import json_text, sse
from streamsieve.wire.json_text import JsonObject

EVENT = b"event: tool_call\n"
"""The name of the server-sent event; its data is a chunk without choices, which clients of chunks pass over."""


class Announcements:
    """The complete calls of one choice that have not been announced yet."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._start: CallStart | None = None
        self._arguments: list[str] = []
        self._due: list[JsonObject] = []

    def see(self, event: Event | None) -> None:
        """Take the next event that the client is told of."""
        match event:
            case CallStart():
                self._start, self._arguments = event, []
            case CallArguments(json=json):
                self._arguments.append(json)
            case CallEnd(index) if self._start is not None and self._start.index == index:
                function = {"name": self._start.name, "arguments": "".join(self._arguments)}
                call = {"index": index, "id": self._start.id, "type": "function", "function": function}
                self._due.append({"choice": self._choice, **call})

    def take(self, chunk: JsonObject) -> bytes:
        """The events that announce what is due; `chunk` has what every chunk of the reply has."""
        due, self._due = self._due, []
        chunks = [{**chunk, "choices": [], "tool_call": call} for call in due]
        return b"".join(sse.encode(json_text.encode(one), EVENT) for one in chunks)
