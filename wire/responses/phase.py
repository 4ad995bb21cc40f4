"""How far a streamed response has come."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """What the client was told of the response."""

    WAITING = enum.auto()  # nothing
    WRITING = enum.auto()  # that it is in progress
    ENDED = enum.auto()  # how it ended; nothing follows
