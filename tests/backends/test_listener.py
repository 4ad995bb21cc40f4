"""The socket that servers listen on."""

from __future__ import annotations

import asyncio
import socket

import pytest

from streamsieve.backends.listener import listening


async def test_small_answers_do_not_wait_for_acknowledgements():
    """asyncio sets TCP_NODELAY on connections whose protocol it knows."""
    accepted = asyncio.get_running_loop().create_future()

    def on_connect(reader, writer):
        accepted.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listening("127.0.0.1", 0) as listener:
        async with await asyncio.start_server(on_connect, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            assert await accepted
            writer.close()


def test_a_port_that_is_taken_is_an_error():
    with listening("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        listening("127.0.0.1", first.getsockname()[1])
