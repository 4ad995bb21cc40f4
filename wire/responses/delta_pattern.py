"""A delta event of an upstream's stream with gaps where its text and its number were."""

from __future__ import annotations

import re

import orjson

from streamsieve.wire import json_text, sse
from streamsieve.wire.chat.chunk_template import USELESS
from streamsieve.wire.json_text import JsonObject

_GAPS = re.compile(rb'"delta"\s*:\s*(?P<text>%b)|"sequence_number"\s*:\s*(?P<number>\d+)' % json_text.STRING)
_PROBE: JsonObject = {"delta": "?", "sequence_number": 1}


class DeltaPattern:
    """The bytes of one event, by which others like it are known without decoding them."""

    __slots__ = ("_after", "_before", "_between", "used")

    def __init__(self, before: bytes, between: re.Pattern[bytes], after: bytes) -> None:
        self._before = before
        self._between = between  # from the first gap to the end of the last
        self._after = after
        self.used = False

    @classmethod
    def learn(cls, raw: bytes, body: JsonObject) -> DeltaPattern | None:
        """The pattern of `raw`, an event that holds `body`; None where it has none.

        Which bytes are the gaps is not guessed: with others in their place the event must read as the same
        body with these.
        """
        gaps = list(_GAPS.finditer(raw))
        if sorted(filter(None, [found.lastgroup for found in gaps])) != ["number", "text"]:
            return None
        first, last = (found.span(found.lastgroup or 0) for found in gaps)
        middle = raw[first[1] : last[0]]
        probes = {"text": b'"?"', "number": b"1"}
        one, other = (found.lastgroup or "" for found in gaps)
        probe = raw[: first[0]] + probes[one] + middle + probes[other] + raw[last[1] :]
        if _read(probe) != {**body, **_PROBE}:
            return None
        patterns = {"text": b"(%b)" % json_text.STRING, "number": rb"\d+"}
        between = re.compile(patterns[one] + re.escape(middle) + patterns[other])
        return cls(raw[: first[0]], between, raw[last[1] :])

    def text(self, raw: bytes) -> str | None:
        """The text in `raw`; None where it is not this event but for its gaps."""
        if not raw.startswith(self._before) or not raw.endswith(self._after):
            return None
        found = self._between.fullmatch(raw, len(self._before), len(raw) - len(self._after))
        if found is None:
            return None
        try:
            text = orjson.loads(found[1])
        except orjson.JSONDecodeError:
            return None
        self.used = True
        return text if isinstance(text, str) else None


class DeltaPatterns:
    """The newest pattern of one stream."""

    def __init__(self) -> None:
        self.newest: DeltaPattern | None = None
        self._useless = 0

    def learn(self, raw: bytes, body: JsonObject) -> None:
        """Make a pattern of a delta event; it takes the place of the earlier one."""
        if self.newest is not None and not self.newest.used:
            self._useless += 1
        self.newest = DeltaPattern.learn(raw, body) if self._useless < USELESS else None

    def forget(self) -> None:
        """What comes next is not for this pattern."""
        self.newest = None


def _read(raw: bytes) -> object:
    """What one event holds."""
    events = sse.Decoder(len(raw)).feed(raw)
    if len(events) != 1 or events[0].data is None:
        return None
    try:
        return json_text.decode(events[0].data)
    except json_text.NotJsonError:
        return None
