"""A whole reply read at once, for those who have one: the machine without a stream round it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector, Message

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format


def read(
    format: Format,
    pieces: Iterable[str],
    request: Request,
    finish: str | None = "stop",
    *,
    deliver: Literal["stream", "complete"] = "stream",
    whole: bool = False,
) -> Message:
    """The message that comes of a reply which arrives as `pieces`; `finish` is the engine's finish reason.

    `whole`, `deliver`: as for `Format.machine`.
    """
    machine = format.machine(request, deliver=deliver, whole=whole)
    collector = Collector()
    for piece in pieces:
        collector.add(machine.feed(piece))
    collector.add(machine.finish(finish))
    return collector.message(finish, request)
