"""Server-sent events as bytes, by the rules of the WHATWG (HTML standard, "event stream interpretation").

Lines end in LF, CRLF or CR and in nothing else, so a U+2028 inside a JSON string cuts nothing. What
comes in may be cut anywhere, also inside a character or between CR and LF. Whoever passes on the
`raw` of every event, in order, passes on the bytes that came in.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

DONE = b"[DONE]"
"""The data of the event that ends an OpenAI stream."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_ENDS = b"\r\n"
_DATA = b"data: "
_ERROR = re.compile(rb"^event:[ ]?error\r?$", re.MULTILINE)


class Event(NamedTuple):
    """A piece of a stream that is passed on as a whole.

    `raw`: its bytes as they came. `data`: its data lines joined by LF; None where it has none (a
    comment, a blank line, an event over the limit). `fields`: its other lines (`id`, `event`, `retry`
    and unknown ones), each with its line end.
    """

    raw: bytes
    data: bytes | None = None
    fields: bytes = b""

    @property
    def is_error(self) -> bool:
        """Whether its type is `error`."""
        return _ERROR.search(self.fields) is not None


def encode(data: bytes, fields: bytes = b"") -> bytes:
    """One event; `data` has no line end in it, `fields` are whole lines as in `Event.fields`."""
    return b"%bdata: %b\n\n" % (fields, data)


def _is_one_line(chunk: bytes) -> bool:
    """Whether a chunk is one event of one line, as most are."""
    return chunk.startswith(_DATA) and chunk.find(b"\n") == len(chunk) - 2 and chunk[-1] == 10 and b"\r" not in chunk


class _State(enum.Enum):
    EVENT = enum.auto()  # between events, or in one that is being gathered
    OVERLONG = enum.auto()  # before a line of an event over the limit, which is passed on as it comes
    OVERLONG_LINE = enum.auto()  # in such a line


class _Cut(enum.Enum):
    """Where an LF belongs that may still follow the CR at the end of a chunk."""

    NOWHERE = enum.auto()  # the chunk did not end in CR
    KEPT = enum.auto()  # to the last line of the open event
    HANDED_OUT = enum.auto()  # to bytes that have left


class Decoder:
    """Cuts the body of one response into events.

    A comment is handed out as soon as its line ends, ahead of an event that it stands in: comments
    keep connections alive. An event longer than `limit` bytes is handed out in pieces without `data`,
    so no more than `limit` bytes and one network chunk are held.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._state = _State.EVENT
        self._lines = bytearray()  # the complete lines of the open event
        self._line = bytearray()  # the open line
        self._cut = _Cut.NOWHERE
        self._first_line = True
        self.between_events = True
        """Nothing is held, so a chunk that is known to be one whole event may go another way."""

    def feed(self, data: bytes) -> list[Event]:
        """The events, comments and blank lines that `data` completes."""
        if self.between_events and _is_one_line(data):
            self._first_line = False
            return [Event(data, data[len(_DATA) : -2])]
        if not data:
            return []
        out: list[Event] = []
        if self._cut is not _Cut.NOWHERE:
            data = self._join_cr_lf(data, out)
        for line in data.splitlines(keepends=True):  # of bytes: at LF, CRLF and CR only
            if line[-1] in _LINE_ENDS:
                self._end_line(line, out)
            else:
                self._open_line(line, out)
        self.between_events = not self._is_holding() and self._cut is _Cut.NOWHERE and self._state is _State.EVENT
        return out

    def close(self) -> Event | None:
        """What the stream ended in: an event without its blank line, or None."""
        if not self._is_holding():
            return None
        self._lines += self._line
        return self._dispatch()

    def _is_holding(self) -> bool:
        return bool(self._lines or self._line)

    def _join_cr_lf(self, data: bytes, out: list[Event]) -> bytes:
        cut, self._cut = self._cut, _Cut.NOWHERE
        if not data.startswith(b"\n"):
            return data
        if cut is _Cut.KEPT:
            self._lines += b"\n"
        else:
            out.append(Event(b"\n"))
        return data[1:]

    def _open_line(self, piece: bytes, out: list[Event]) -> None:
        self._cut = _Cut.NOWHERE
        if self._state is not _State.EVENT:
            self._state = _State.OVERLONG_LINE
            out.append(Event(piece))
            return
        self._line += piece
        self._hold_limit(out)

    def _end_line(self, line: bytes, out: list[Event]) -> None:
        if self._line:
            line = bytes(self._line) + line
            self._line.clear()
        if self._first_line and line.startswith(_BYTE_ORDER_MARK):
            out.append(Event(_BYTE_ORDER_MARK))
            line = line.removeprefix(_BYTE_ORDER_MARK)
        self._first_line = False
        self._cut = _Cut.HANDED_OUT if line.endswith(b"\r") else _Cut.NOWHERE
        match self._state, line.rstrip(_LINE_ENDS):
            case _State.EVENT, b"":
                self._lines += line
                out.append(self._dispatch())
            case _State.EVENT, text if text.startswith(b":"):
                out.append(Event(line))
            case _State.EVENT, _:
                self._keep_line(line, out)
            case state, text:
                out.append(Event(line))
                ended = state is _State.OVERLONG and not text
                self._state = _State.EVENT if ended else _State.OVERLONG

    def _keep_line(self, line: bytes, out: list[Event]) -> None:
        self._lines += line
        if self._cut is _Cut.HANDED_OUT:
            self._cut = _Cut.KEPT
        self._hold_limit(out)

    def _hold_limit(self, out: list[Event]) -> None:
        if len(self._lines) + len(self._line) <= self._limit:
            return
        self._state = _State.OVERLONG_LINE if self._line else _State.OVERLONG
        if self._cut is _Cut.KEPT:
            self._cut = _Cut.HANDED_OUT
        out.append(Event(bytes(self._lines + self._line)))
        self._forget()

    def _dispatch(self) -> Event:
        raw = bytes(self._lines)
        self._forget()
        data: list[bytes] = []
        fields: list[bytes] = []
        for line in raw.splitlines(keepends=True):
            name, _, value = line.rstrip(_LINE_ENDS).partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif name:
                fields.append(line)
        return Event(raw, b"\n".join(data) if data else None, b"".join(fields))

    def _forget(self) -> None:
        self._lines.clear()
        self._line.clear()
