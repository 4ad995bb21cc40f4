"""Token ids beside the text tell a marker from the same characters typed (contract, rule 2)."""

from __future__ import annotations

import json

import orjson
import pytest

from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

THINK_ENDS, TYPED = 7, 1
REQUEST = orjson.dumps({"model": "m", "messages": [], "stream": True})


@pytest.fixture
def tokenizer(tmp_path):
    added = [{"id": THINK_ENDS, "content": "</think>", "special": False}]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
    return tmp_path


def event(text, ids):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return (
        b"data: "
        + orjson.dumps({"id": "c", "choices": [choice | ({} if ids is None else {"token_ids": ids})]})
        + b"\n\n"
    )


@pytest.mark.parametrize(
    ("ids", "reasoning", "content"),
    [
        ([[TYPED], [TYPED, TYPED], [TYPED], [THINK_ENDS], [TYPED]], "Not </think> yet.", "Hi"),
        ([None, None, None, None, None], "Not", " yet.Hi"),
    ],
)
async def test_a_typed_closer_does_not_end_thinking(tokenizer, ids, reasoning, content):
    exchange = Exchange(Settings(reasoning_parser="qwen3", tokenizer=tokenizer), REQUEST)
    exchange.start(200, [(b"content-type", b"text/event-stream")])
    texts = ["Not ", "</think>", " yet.", "</think>", "Hi"]
    out = b"".join([await exchange.feed(event(text, one)) for text, one in zip(texts, ids, strict=True)])
    out += await exchange.close()
    deltas = [orjson.loads(line[6:])["choices"][0]["delta"] for line in out.splitlines() if line.startswith(b"data: {")]
    assert "".join(delta.get("reasoning", "") for delta in deltas) == reasoning
    assert "".join(delta.get("content", "") for delta in deltas).lstrip() == content.lstrip()
