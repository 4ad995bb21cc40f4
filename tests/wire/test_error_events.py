"""What is held goes out before an error, however the upstream words it."""

from __future__ import annotations

import orjson
import pytest

from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

HELD = {"id": "c", "choices": [{"index": 0, "delta": {"content": "t</think>hi <"}, "finish_reason": None}]}


@pytest.mark.parametrize(
    "error", [b'data: {"error": {"message": "x"}}\n\n', b'event: error\ndata: {"message": "x"}\n\n']
)
async def test_held_text_comes_first_and_the_error_unchanged(error):
    exchange = Exchange(Settings(reasoning_parser="qwen3"), orjson.dumps({"messages": [], "stream": True}))
    exchange.start(200, [(b"content-type", b"text/event-stream")])
    await exchange.feed(b"data: " + orjson.dumps(HELD) + b"\n\n")
    out = await exchange.feed(error)
    assert out.endswith(error)
    assert orjson.loads(out.split(b"\n\n")[0][6:])["choices"][0]["delta"] == {"content": " <"}
