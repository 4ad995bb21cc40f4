"""The layer over a connection's reads: brief while the end is read, gone afterwards, nobody else's business."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from streamsieve.sdk_patch.drain import SECONDS, Drain


class Network:
    """A connection that notes how long each read may take."""

    def __init__(self) -> None:
        self.timeouts: list[float | None] = []

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.timeouts.append(timeout)
        return b""


@pytest.fixture
def network():
    return Network()


@pytest.fixture
def drained(http, network):
    """A response on the connection whose client is done, and its drain."""

    def made(**differing):
        given = {"is_closed": False, "http_version": "HTTP/1.1", "extensions": {"network_stream": network}}
        response = SimpleNamespace(**{**given, **differing})
        drain = Drain(response, http)
        drain.saw(b"data: [DONE]\n\n")
        return response, drain

    return made


def test_reads_are_brief_until_the_response_is_closed(network, drained):
    """As soon as it is closed, the connection may be another request's."""
    response, drain = drained()

    def pieces():
        network.read(1, timeout=600)
        yield b""
        response.is_closed = True
        network.read(1, timeout=600)

    drain.read(pieces())
    network.read(1, timeout=600)
    assert network.timeouts == [SECONDS, 600, 600]
    assert "read" not in vars(network)


def test_two_layers_come_off_in_either_order(network, drained):
    """The next response on the connection may come to its own end before this one has tidied up."""
    (response, first), (_, second) = drained(), drained()
    with first._brief_reads():
        response.is_closed = True
        later = second._brief_reads()
        later.__enter__()
    network.read(1, timeout=600)
    later.__exit__(None, None, None)
    network.read(1, timeout=600)
    assert network.timeouts == [SECONDS, 600]
    assert "read" not in vars(network)


@pytest.mark.parametrize(
    ("differing", "last"),
    [
        ({}, b'data: {"choices": []}\n\n'),
        ({}, b'data: {"content": "[DONE]"}\n\n'),
        ({"is_closed": True}, b"data: [DONE]\n\n"),
        ({"http_version": "HTTP/2"}, b"data: [DONE]\n\n"),
        ({"extensions": {}}, b"data: [DONE]\n\n"),
        ({"extensions": {"network_stream": object()}}, b"data: [DONE]\n\n"),
    ],
    ids=str,
)
def test_nothing_is_read_where_there_is_nothing_to_win(differing, last, drained):
    _, drain = drained(**differing)
    drain.saw(last)
    pieces = iter([b"a"])
    drain.read(pieces)
    assert next(pieces) == b"a"


@pytest.mark.parametrize("last", [b"data: [DONE]\n\n", b"data:[DONE]\r\n\r\n", b": x\n\ndata: [DONE]\n"])
def test_what_is_left_after_done_is_read(last, drained):
    _, drain = drained()
    drain.saw(b"data: {}\n\n")
    drain.saw(last)
    pieces = iter([b"", b""])
    drain.read(pieces)
    assert next(pieces, None) is None
