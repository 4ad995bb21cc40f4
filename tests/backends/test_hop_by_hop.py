"""RFC 9110 §7.6.1: what ends with the connection."""

import pytest

from streamsieve.backends.hop_by_hop import end_to_end


@pytest.mark.parametrize(
    "name",
    [
        "connection",
        "proxy-connection",
        "keep-alive",
        "te",
        "transfer-encoding",
        "upgrade",
        "proxy-authenticate",
        "proxy-authorization",
        "trailer",
    ],
)
def test_a_field_of_the_hop_is_left_out(name: str) -> None:
    fields = [(b"accept", b"*/*"), (name.title().encode(), b"x"), (b"x-other", b"1")]
    assert end_to_end(fields) == [(b"accept", b"*/*"), (b"x-other", b"1")]


@pytest.mark.parametrize(
    ("connection", "left"),
    [
        ([b"close"], [b"x-one", b"x-two"]),
        ([b"X-One"], [b"x-two"]),
        ([b"keep-alive, X-One ,x-two"], []),
        ([b"x-one", b" x-two "], []),
        ([b""], [b"x-one", b"x-two"]),
    ],
)
def test_what_connection_names_is_left_out(connection: list[bytes], left: list[bytes]) -> None:
    fields = [(b"X-One", b"1"), (b"x-two", b"2"), *((b"Connection", value) for value in connection)]
    assert [name for name, _ in end_to_end(fields)] == left


def test_all_else_is_kept_in_order_repeats_and_bytes_too() -> None:
    fields = [(b"Set-Cookie", b"a=1"), (b"content-length", b"3"), (b"Set-Cookie", b"b=\xe9"), (b"via", b"1.1 x")]
    assert end_to_end(fields) == [(name.lower(), value) for name, value in fields]
