"""The event-stream grammar, at every cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsieve.wire.sse import Decoder, Event, encode

LIMIT = 1 << 20

# name, what comes in, the (data, fields) of what has data
STREAMS: list[tuple[str, bytes, list[tuple[bytes, bytes]]]] = [
    ("line feeds", b"data: a\n\ndata: b\n\n", [(b"a", b""), (b"b", b"")]),
    ("carriage return, line feed", b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"a", b""), (b"b", b"")]),
    ("carriage returns", b"data: a\r\rdata: b\r\r", [(b"a", b""), (b"b", b"")]),
    ("mixed ends", b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", [(b"a", b""), (b"b", b""), (b"c", b"")]),
    ("byte order mark", b"\xef\xbb\xbfdata: a\n\n", [(b"a", b"")]),
    ("byte order mark later on is text", b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [(b"a", b"")]),
    ("one space belongs to the colon", b"data:a\n\ndata:  b\n\n", [(b"a", b""), (b" b", b"")]),
    ("colon in the value", b"data: a: b\n\n", [(b"a: b", b"")]),
    ("several data lines", b"data: a\ndata\ndata: b\n\n", [(b"a\n\nb", b"")]),
    (
        "fields are kept",
        b"id: 7\nevent: x\ndata: a\nretry: 3\nnew: y\n\n",
        [(b"a", b"id: 7\nevent: x\nretry: 3\nnew: y\n")],
    ),
    ("a field without data", b"id: 7\n\ndata: a\n\n", [(b"a", b"")]),
    ("comments", b": ping\n\ndata: a\n: in it\ndata: b\n\n:\n", [(b"a\nb", b"")]),
    (
        "NEL and U+2028 are text",
        "data: a\u0085b\u2028c\x0b\x0cd\n\n".encode(),
        [("a\u0085b\u2028c\x0b\x0cd".encode(), b"")],
    ),
    ("a line feed that begins a chunk, but no CR before it", b"data: a\rid\ndata: b\n\n", [(b"a\nb", b"id\n")]),
    ("blank lines", b"\n\r\n\rdata: a\n\n\n\n", [(b"a", b"")]),
]


def decode(*chunks: bytes, limit: int = LIMIT) -> list[Event]:
    decoder = Decoder(limit)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    rest = decoder.close()
    return [*events, rest] if rest else events


def dispatched(events: list[Event]) -> list[tuple[bytes, bytes]]:
    return [(event.data, event.fields) for event in events if event.data is not None]


def raw(events: list[Event]) -> bytes:
    return b"".join(event.raw for event in events)


@pytest.mark.parametrize(("stream", "expected"), [pytest.param(s, e, id=n) for n, s, e in STREAMS])
def test_events_at_every_cut(stream: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    for cut in range(len(stream) + 1):
        events = decode(stream[:cut], stream[cut:])
        assert dispatched(events) == expected, cut
        assert raw(events) == stream or b": in it" in stream
    assert dispatched(decode(*(stream[i : i + 1] for i in range(len(stream))))) == expected


pieces = st.sampled_from(
    [b"data: a", b"data", b":", b"id: 1", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b" "]
)


@given(stream=st.lists(pieces).map(b"".join), cuts=st.lists(st.integers(0, 60)))
def test_a_cut_changes_nothing(stream: bytes, cuts: list[int]) -> None:
    borders = [0, *sorted(cut for cut in cuts if cut <= len(stream)), len(stream)]
    events = decode(*(stream[a:b] for a, b in itertools.pairwise(borders)))
    assert dispatched(events) == dispatched(decode(stream))


@given(stream=st.lists(pieces.filter(lambda piece: piece != b":")).map(b"".join), cut=st.integers(0, 60))
def test_raw_bytes_are_the_bytes_that_came(stream: bytes, cut: int) -> None:
    assert raw(decode(stream[:cut], stream[cut:])) == stream


def test_a_comment_leaves_with_its_line_end_and_ahead_of_the_event_it_stands_in() -> None:
    decoder = Decoder(LIMIT)
    assert decoder.feed(b"data: a\n: pi") == []
    assert decoder.feed(b"ng\n") == [Event(b": ping\n")]
    assert decoder.feed(b"\n") == [Event(b"data: a\n\n", b"a")]


def test_an_event_that_ends_in_carriage_returns_does_not_wait_for_the_next() -> None:
    decoder = Decoder(LIMIT)
    assert decoder.feed(b"data: a\r\n\r") == [Event(b"data: a\r\n\r", b"a")]
    assert decoder.feed(b"\n") == [Event(b"\n")]


def test_the_last_event_needs_no_blank_line() -> None:
    decoder = Decoder(LIMIT)
    assert decoder.feed(b"data: a\ndata: b") == []
    assert decoder.close() == Event(b"data: a\ndata: b", b"a\nb")
    assert decoder.close() is None


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_over_the_limit_passes_in_pieces_and_the_next_is_read(end: bytes) -> None:
    long = end.join([b"data: " + b"x" * 24, b"data: " + b"y" * 24, b"data: z", b"", b""])
    stream = b"data: a\n\n" + long + b"data: b\n\n"
    cuts = [[stream[:cut], stream[cut:]] for cut in range(len(stream))]
    for chunks in [*cuts, [stream[i : i + 1] for i in range(len(stream))]]:
        events = decode(*chunks, limit=40)
        assert raw(events) == stream
        assert dispatched(events) == [(b"a", b""), (b"b", b"")]


def test_no_more_than_the_limit_is_held() -> None:
    decoder = Decoder(limit=40)
    handed_out = 0
    for received in range(1, 200):
        handed_out += sum(len(event.raw) for event in decoder.feed(b"x"))
        assert received - handed_out <= 40


@pytest.mark.parametrize("fields", [b"", b"id: 7\n", b"event: x\r\nid: 7\r\n"])
def test_encode_is_read_back(fields: bytes) -> None:
    assert decode(encode(b"{}", fields)) == [Event(encode(b"{}", fields), b"{}", fields)]
