"""The events of one streamed response as bytes, numbered without gaps."""

from __future__ import annotations

from streamsieve.wire import json_text, sse
from streamsieve.wire.json_text import JsonObject


class EventWriter:
    """Counts the events of one stream from 0."""

    def __init__(self) -> None:
        self._next = 0

    def write(self, kind: str, fields: JsonObject) -> bytes:
        """One event of this type."""
        data = {"type": kind, **fields, "sequence_number": self.number()}
        return sse.encode(json_text.encode(data), b"event: %b\n" % kind.encode())

    def number(self) -> int:
        """The number of an event that is written elsewhere."""
        number = self._next
        self._next += 1
        return number


class DeltaTemplate:
    """The bytes of the delta events of one item, which differ in their text and number only."""

    __slots__ = ("_after", "_before", "_writer")

    def __init__(self, writer: EventWriter, kind: str, fields: JsonObject, *, logprobs: bool = False) -> None:
        """`logprobs`: the events have that field."""
        head = json_text.encode({"type": kind, **fields})[:-1]
        self._writer = writer
        self._before = b'event: %b\ndata: %b,"delta":' % (kind.encode(), head)
        self._after = b',"logprobs":%b' if logprobs else b""

    def fill(self, text: str, logprobs: list[JsonObject] | None = None) -> bytes:
        """The next event, with this text."""
        after = self._after
        if after:
            after = after % (json_text.encode(logprobs) if logprobs else b"[]")
        return b'%b%b%b,"sequence_number":%d}\n\n' % (
            self._before,
            json_text.encode(text),
            after,
            self._writer.number(),
        )
