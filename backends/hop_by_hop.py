"""Which header fields a gateway forwards, and which end with the connection they came over."""

from __future__ import annotations

from collections.abc import Iterable

Header = tuple[bytes, bytes]

CONNECTION_FIELDS = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"te", b"transfer-encoding", b"upgrade"}
)
"""The fields that RFC 9110 §7.6.1 names."""

SPENT_FIELDS = frozenset({b"proxy-authenticate", b"proxy-authorization", b"trailer"})
"""Meant for the next hop alone (RFC 9110 §11.7), or announcing trailers, which neither side here can carry."""


def end_to_end(headers: Iterable[Header]) -> list[Header]:
    """The fields to forward, in order, names in lower case as ASGI wants them.

    Left out are the hop's own fields and every field that a `Connection` field names.
    """
    fields = [(name.lower(), value) for name, value in headers]
    dropped = CONNECTION_FIELDS | SPENT_FIELDS | _named_by_connection(fields)
    return [field for field in fields if field[0] not in dropped]


def _named_by_connection(fields: Iterable[Header]) -> set[bytes]:
    return {option.strip().lower() for name, value in fields if name == b"connection" for option in value.split(b",")}
