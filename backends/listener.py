"""The socket that a server listens on."""

from __future__ import annotations

import socket


def listening(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one. Raises OSError where that cannot be.

    Its protocol is named: asyncio turns Nagle's algorithm off only then, and with it on, a small answer
    on a reused connection waits some 40 ms for the client's acknowledgement.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    return listener
