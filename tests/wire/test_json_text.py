"""JSON that goes through us comes out as it went in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsieve.wire.json_text import NotJsonError, decode, encode

UNCHANGED = [
    b"null",
    b'{"b":1,"a":[true,false,null,{}]}',
    b'"\xc3\xb8 \xf0\x9f\x98\x80 \\" \\\\ \\n"',
    b'{"n":1e400}',
    b'{"n":-1e400,"s":"\xc3\xb8"}',
    b'{"n":123456789012345678901234567890}',
    b'{"n":-9223372036854775808,"m":18446744073709551615}',
    b'{"n":-9223372036854775809}',
    b'{"n":18446744073709551616}',
    b'{"created":1764452000123456789}',
    b'{"n":0.1234567890123456789012345}',
    b"[NaN,Infinity,-Infinity]",
    b'"\\ud83d"',
    b'{"\\ude00":["\\ud83d",1e400,{"a":NaN}]}',
    b'{"s":"12345678901234567890"}',
    b"[" * 500 + b"]" * 500,
    b'{"a":' * 500 + b'"\\ud83d"' + b"}" * 500,
]


@pytest.mark.parametrize("text", UNCHANGED)
def test_text_survives(text: bytes) -> None:
    assert encode(decode(text)) == text


@pytest.mark.parametrize(
    "data", [b"", b"{", b"hello", b"\xff", b'"\xff"', b'{"a":}', b"[DONE]", b"[" * 100_000, b'{"a":' * 100_000]
)
def test_what_is_not_json(data: bytes) -> None:
    with pytest.raises(NotJsonError):
        decode(data)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=[])), inner),
)


@given(values)
def test_a_value_means_the_same_afterwards(value: object) -> None:
    text = json.dumps(value).encode()
    assert json.loads(encode(decode(text))) == json.loads(text)
