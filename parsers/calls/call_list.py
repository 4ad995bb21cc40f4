"""A list of calls in brackets, or between tags: elements, commas, an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reading

Commas = Literal["between", "trailing", "free"]
"""Commas stand between the elements; may stand behind the last one too; or are not needed at all."""


def read_list(
    calls: CallWriter, read_one: Callable[[CallWriter], Reading[None]], *, close: str = "]", commas: Commas = "between"
) -> Reading[None]:
    """Read the elements of a list and its `close`, which may be missing at the end of the text.

    Each element is a call of its own: those that are complete stay when a later one breaks.
    """
    reader, closer = calls.reader, Markers.of(close)
    yield from reader.peek_after_space()
    closed = yield from reader.takes(closer)
    try:
        while not closed:
            calls.begin()
            yield from read_one(calls)
            calls.end()
            comma = (yield from reader.peek_after_space()) == ","
            if comma:
                reader.position += 1
                yield from reader.peek_after_space()
            closed = (yield from reader.takes(closer)) if not comma or commas != "between" else None
            if not closed and not comma and commas != "free":
                raise Malformed
    except EndOfText:
        if calls.state is not CallState.NONE:
            raise
        calls.unclosed()
