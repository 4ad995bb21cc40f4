"""A chat chunk with a gap where its delta was."""

from __future__ import annotations

import re

import orjson

from streamsieve.wire import json_text
from streamsieve.wire.json_text import JsonObject

USELESS = 16
"""So many templates may turn out to be of no use; then each event has something of its own, and no more are made."""

_CONTENT_DELTA = re.compile(rb'"delta"\s*:\s*(\{\s*"content"\s*:\s*)(%b)(\s*\})' % json_text.STRING)


class Template:
    """The bytes of an event round a delta that is only content.

    An upstream's chunks are mostly alike to the byte but for the text of the delta. One string may stand
    for another in JSON, so what was found out about the first such event holds for all of them: they
    need neither be decoded nor encoded as a whole.
    """

    __slots__ = ("_after", "_before", "_closing", "_gap", "_opening", "used")

    def __init__(self, before: bytes, opening: bytes, closing: bytes, after: bytes) -> None:
        self._before = before  # the delta
        self._after = after
        self._opening = before + opening  # the text
        self._closing = closing + after
        self._gap = slice(len(self._opening), -len(self._closing))
        self.used = False

    @classmethod
    def learn(cls, raw: bytes, chunk: JsonObject) -> Template | None:
        """The template of `raw`, an event that holds `chunk`, of one choice; None where it has none.

        Which bytes are the text is not guessed: with another text in their place the event must read as
        the same chunk with that text.
        """
        found = _CONTENT_DELTA.search(raw)
        match chunk["choices"]:
            case [{"delta": {"content": str(text)}, **beside}] if found:
                template = cls(raw[: found.start(1)], found[1], found[3], raw[found.end() :])
                probe = {"content": f"{text}?"}
                if template._reads(probe["content"]) == {**chunk, "choices": [{**beside, "delta": probe}]}:
                    return template
        return None

    def text(self, raw: bytes) -> str | None:
        """The text in `raw`; None where it is not this event but for its text."""
        if not raw.startswith(self._opening) or not raw.endswith(self._closing):
            return None
        try:
            text = orjson.loads(raw[self._gap])
        except orjson.JSONDecodeError:
            return None
        if not isinstance(text, str):
            return None
        self.used = True
        return text

    def fill(self, delta: JsonObject) -> bytes:
        """The event with this delta."""
        try:
            return self._before + orjson.dumps(delta) + self._after
        except orjson.JSONEncodeError:
            return self._before + json_text.encode(delta) + self._after

    def _reads(self, text: str) -> object:
        event = self._opening + json_text.encode(text) + self._closing
        try:
            return json_text.decode(event.removeprefix(b"data:"))
        except json_text.NotJsonError:
            return None


class Templates:
    """What one response's events are made of, by choice index."""

    def __init__(self) -> None:
        self.by_index: dict[int, Template] = {}
        self._useless = 0

    def may_learn(self) -> bool:
        return self._useless < USELESS

    def learn(self, index: int, raw: bytes, chunk: JsonObject) -> None:
        """Make a template of an event that holds `chunk`, of one choice; it takes the place of an earlier one."""
        self.forget(index)
        template = Template.learn(raw, chunk)
        if template is None:
            self._useless += 1
        else:
            self.by_index[index] = template

    def forget(self, index: int) -> None:
        template = self.by_index.pop(index, None)
        if template is not None and not template.used:
            self._useless += 1
