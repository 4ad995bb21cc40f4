"""An upstream may send any JSON: nothing raises, whatever the settings."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsieve.parsers.chain import run
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

NAMES = st.sampled_from(
    ["content", "token", "bytes", "text", "tokens", "token_logprobs", "top_logprobs", "tool_calls", "function", "name",
     "arguments", "index"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-5, 9) | st.text(max_size=6) | st.floats(allow_nan=False)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)


def one_of(*usual: st.SearchStrategy[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    shape = [st.fixed_dictionaries({}, optional=fields)] if fields else []
    return st.one_of(*shape, *usual, VALUES)


TEXT = one_of(st.text(max_size=5), st.just("<tool_call>"), st.just("</think>"))
ENTRY = one_of(token=TEXT, bytes=one_of(st.lists(st.integers(0, 300), max_size=3)), logprob=VALUES)
LOGPROBS = one_of(content=one_of(st.lists(ENTRY, max_size=3)), tokens=st.lists(TEXT, max_size=2), token_logprobs=VALUES)
CHOICE = one_of(
    index=one_of(st.integers(0, 2)),
    delta=one_of(content=TEXT, tool_calls=VALUES, reasoning=TEXT, role=VALUES),
    message=one_of(content=TEXT, tool_calls=VALUES, reasoning=TEXT),
    text=TEXT,
    logprobs=LOGPROBS,
    token_ids=one_of(st.lists(st.integers(0, 9), max_size=3)),
    finish_reason=one_of(st.just("stop")),
)
CHUNK = one_of(choices=one_of(st.lists(CHOICE, max_size=2)), usage=VALUES, id=VALUES, error=VALUES, object=VALUES)

PARSERS: dict[str, Any] = {"tool_parser": "hermes", "reasoning_parser": "qwen3"}
INSTALLED = {
    "plain": Settings(**PARSERS),
    "shadow": Settings(**PARSERS, shadow=True, observers=["metrics"]),
    "raw": Settings(**PARSERS, render_prompt=lambda body: SimpleNamespace(text="x", tail="")),
    "limits": Settings(**PARSERS, announce_calls=True, max_held=4, max_calls=1, observers=["log"]),
}


@pytest.mark.parametrize("installed", INSTALLED.values(), ids=list(INSTALLED))
@settings(max_examples=150, deadline=None)
@given(chunks=st.lists(CHUNK, max_size=4), whole=st.booleans(), include=st.booleans())
def test_nothing_raises(installed: Settings, chunks: Any, whole: bool, include: bool) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    request = orjson.dumps({"messages": [], "tools": tools, "include_reasoning": include})
    exchange = Exchange(installed, request)
    exchange.start(200, [(b"content-type", b"application/json" if whole else b"text/event-stream")])
    for chunk in chunks:
        data = json.dumps(chunk).encode()
        run(exchange.feed(data if whole else b"data: %b\n\n" % data))
    run(exchange.close())
    run(exchange.aclose())
