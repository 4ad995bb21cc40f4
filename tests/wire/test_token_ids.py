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
    deltas = [orjson.loads(line[6:])["choices"][0]["delta"] for line in out.splitlines() if b'"delta"' in line]
    assert "".join(delta.get("reasoning", "") for delta in deltas) == reasoning
    assert "".join(delta.get("content", "") for delta in deltas).lstrip() == content.lstrip()


PARSERS = {"reasoning_parser": "qwen3", "tool_parser": "hermes"}
STREAMED = [
    {"index": 0, "delta": {"role": "assistant", "content": ""}, "prompt_token_ids": [1], "token_ids": []},
    {"index": 0, "delta": {"content": "Hm.</think>Hi <tool"}, "token_ids": [TYPED, THINK_ENDS, TYPED]},
    {"index": 0, "delta": {"reasoning": "sorted there"}, "token_ids": [TYPED]},
    {"index": 0, "delta": {"content": "."}, "token_ids": [TYPED], "finish_reason": "stop"},
]
WHOLE = [{"content": "Hm.</think>Hi"}, {"content": "Hi", "reasoning": "sorted there"}]


@pytest.mark.parametrize("asked", [True, False])
def test_what_only_we_asked_for_is_nowhere(driver, tokenizer, asked):
    settings = Settings(upstream="vllm", tokenizer=tokenizer, **PARSERS)
    request = {"return_token_ids": True} if asked else {}
    events = [driver.event(choice, prompt_token_ids=[1, 2]) for choice in STREAMED]
    assert (b"token_ids" in driver.stream(settings, events, request).body) == asked
    assert (b"token_ids" in driver.stream(settings, events[:2], request).body) == asked  # it broke off
    for message in WHOLE:
        choice = {"index": 0, "message": message, "token_ids": [1], "prompt_token_ids": [1], "finish_reason": "stop"}
        whole = driver.whole(settings, {"choices": [choice], "prompt_token_ids": [1, 2]}, request)
        assert ("token_ids" in json.dumps(whole)) == asked


SORTED = [  # delta or message that the upstream sorted, whether its tokens are told where no reasoning is wanted
    ({"reasoning": "It"}, False),
    ({"reasoning_content": "It", "content": "Hi"}, False),
    ({"content": ""}, False),
    ({"content": "Hi"}, True),
]


@pytest.mark.parametrize(("fields", "told"), SORTED)
def test_tokens_of_thinking_that_the_upstream_sorted_are_not_told(driver, fields, told):
    tokens = {"logprobs": {"content": [{"token": "It", "logprob": -1.0}]}, "token_ids": [5]}
    request = {"include_reasoning": False}
    first = {"delta": {"reasoning": "-", "role": "assistant"}}
    sent = driver.stream(Settings(**PARSERS), [first, {"delta": fields, **tokens, "seed": 7}], request).sent[1]
    assert (b'"It"' in sent, b"5" in sent) == (told, told)
    assert b'"seed":7' in sent
    choice = {"index": 0, "message": {"tool_calls": [{"id": "a"}], **fields}, **tokens}
    whole = json.dumps(driver.whole(Settings(**PARSERS), {"choices": [choice]}, request))
    assert ('"It"' in whole) == ("reasoning" not in str(fields))
