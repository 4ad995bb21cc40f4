"""Log probabilities, token ids and the count of reasoning tokens: each goes with the text that it is of."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from streamsieve.parsers.chain import run
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

TOOLS = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}]
CALL = ["<tool_call>", "\n", '{"name": "', "ping", '", "arguments', '": ', '{"a"', ": 1}", "}", "\n", "</tool_call>"]
THOUGHT = ["<think>", "\n", "It", " is", "\n\n", "</think>", "\n\n", "Sun", "ny", " < 5", "."]

# name, settings, tokens, their tokens by tray, reasoning tokens
REPLIES: list[tuple[str, dict[str, Any], list[str], dict[str, list[str]], int | None]] = [
    ("thinking", {}, THOUGHT, {"reasoning": ["It", " is"], "content": ["Sun", "ny", " < 5", "."]}, 4),
    (
        "a call",
        {},
        [*THOUGHT, *CALL, "<|im_end|>"],
        {"reasoning": ["It", " is"], "content": ["Sun", "ny", " < 5", "."], "calls": ["ping", '{"a"', ": 1}"]},
        4,
    ),
    (
        "a marker that takes several tokens, one of which has text behind it",
        {},
        ["Wait", "</", "thi", "nk", ">\n\nHello", "!"],
        {"reasoning": ["Wait"], "content": [">\n\nHello", "!"]},
        1,
    ),
    (
        "what looked like a marker",
        {},
        ["</think>", "a <", "tool", "_cold", ">"],
        {"content": ["a <", "tool", "_cold", ">"]},
        0,
    ),
    (
        "a call that is none",
        {},
        ["</think>", "<tool_call>", "pong", "</tool_call>"],
        {"content": ["<tool_call>", "pong", "</tool_call>"]},
        0,
    ),
    (
        "the word of a marker before and behind it",
        {},
        ["think", "</", "think", ">", "think"],
        {"reasoning": ["think"], "content": ["think"]},
        1,
    ),
    ("no reasoning parser", {"reasoning_parser": None}, ["Sun", "ny"], {"content": ["Sun", "ny"]}, None),
]


def entry(token: str, **fields: Any) -> dict[str, Any]:
    return {"token": token, "logprob": -0.5, "bytes": list(token.encode()), "top_logprobs": [], **fields}


def exchange(options: dict[str, Any], **request: Any) -> Exchange:
    settings = Settings(**{"reasoning_parser": "qwen3", "tool_parser": "hermes", **options})
    return Exchange(settings, orjson.dumps({"messages": [], "tools": TOOLS, "logprobs": True, **request}))


def streamed(subject: Exchange, chunks: list[list[str]], *, ids: bool = True) -> list[dict[str, Any]]:
    """The chunks that come out for chunks of these tokens."""
    subject.start(200, [(b"content-type", b"text/event-stream")])
    out = b""
    number = 0
    for place, tokens in enumerate(chunks, 1):
        choice: dict[str, Any] = {"index": 0, "delta": {"content": "".join(tokens)}, "finish_reason": None}
        choice["logprobs"] = {"content": [entry(token) for token in tokens]}
        if ids:
            choice["token_ids"] = [number := number + 1 for _ in tokens]
        if place == len(chunks):
            choice["finish_reason"] = "stop"
        out += run(subject.feed(b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [choice]})))
    usage = {"id": "c", "choices": [], "usage": {"completion_tokens": 9}}
    out += run(subject.feed(b"data: %b\n\ndata: [DONE]\n\n" % orjson.dumps(usage)))
    return [json.loads(line.removeprefix("data: ")) for line in out.decode().split("\n\n") if "{" in line]


def trays(chunks: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The tokens that came with each tray's text."""
    found: dict[str, list[str]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            tray = "calls" if delta.get("tool_calls") else "content" if delta.get("content") else "reasoning"
            for one in (choice.get("logprobs") or {}).get("content") or ():
                found.setdefault(tray, []).append(one["token"])
    return found


def cuts(tokens: list[str]) -> list[list[list[str]]]:
    return [[[token] for token in tokens], [tokens], [tokens[: len(tokens) // 2], tokens[len(tokens) // 2 :]]]


@pytest.mark.parametrize(("options", "tokens", "expected", "_"), [pytest.param(*row[1:], id=row[0]) for row in REPLIES])
def test_an_entry_goes_with_its_text_however_the_tokens_are_chunked(
    options: Any, tokens: Any, expected: Any, _: Any
) -> None:
    for chunks in cuts(tokens):
        assert trays(streamed(exchange(options), chunks)) == expected


@pytest.mark.parametrize(("options", "tokens", "expected", "_"), [pytest.param(*row[1:], id=row[0]) for row in REPLIES])
def test_a_whole_reply_has_the_same_entries(options: Any, tokens: Any, expected: Any, _: Any) -> None:
    reply = whole(exchange(options), tokens)
    entries = [one["token"] for one in reply["choices"][0]["logprobs"]["content"]]
    assert entries == [token for tray in expected.values() for token in tray]


def whole(subject: Exchange, tokens: list[str], **choice: Any) -> dict[str, Any]:
    subject.start(200, [(b"content-type", b"application/json")])
    given = {
        "index": 0,
        "message": {"role": "assistant", "content": "".join(tokens)},
        "logprobs": {"content": [entry(token) for token in tokens]},
        "token_ids": list(range(1, len(tokens) + 1)),
        "finish_reason": "stop",
        **choice,
    }
    body = orjson.dumps({"id": "c", "choices": [given], "usage": {"completion_tokens": 9}})
    out = run(subject.feed(body)) + run(subject.close())
    reply: dict[str, Any] = json.loads(out)
    return reply


@pytest.mark.parametrize(("options", "tokens", "_", "count"), [pytest.param(*row[1:], id=row[0]) for row in REPLIES])
def test_the_usage_says_how_many_tokens_were_thought(options: Any, tokens: Any, _: Any, count: int | None) -> None:
    details = {} if count is None else {"completion_tokens_details": {"reasoning_tokens": count}}
    for chunks in cuts(tokens):
        assert streamed(exchange(options), chunks)[-1]["usage"] == {"completion_tokens": 9, **details}
    assert whole(exchange(options), tokens)["usage"] == {"completion_tokens": 9, **details}


def test_every_id_comes_out_once_and_in_order() -> None:
    tokens = [*THOUGHT, *CALL, "<|im_end|>"]
    for chunks in cuts(tokens):
        out = streamed(exchange({}), chunks)
        ids = [one for chunk in out for choice in chunk["choices"] for one in choice.get("token_ids", ())]
        assert ids == list(range(1, len(tokens) + 1))


def test_a_client_that_wants_no_reasoning_gets_nothing_of_it() -> None:
    tokens = [*THOUGHT, *CALL]
    for chunks in cuts(tokens):
        out = streamed(exchange({}, include_reasoning=False), chunks)
        assert trays(out) == {"content": ["Sun", "ny", " < 5", "."], "calls": ["ping", '{"a"', ": 1}"]}
        ids = [one for chunk in out for choice in chunk["choices"] for one in choice.get("token_ids", ())]
        assert not set(ids) & set(range(1, 8))
        assert out[-1]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 4}
    choice = whole(exchange({}, include_reasoning=False), tokens)["choices"][0]
    assert "It" not in json.dumps(choice)
    assert not set(choice["token_ids"]) & set(range(1, 8))


def test_tokens_that_cannot_be_told_apart_and_hide_reasoning_are_left_out() -> None:
    subject = exchange({}, include_reasoning=False)
    subject.start(200, [(b"content-type", b"text/event-stream")])
    choice = {"index": 0, "delta": {"content": "a</think>b"}, "token_ids": [1, 2, 3, 4], "finish_reason": "stop"}
    out = run(subject.feed(b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [choice]})))
    assert b"token_ids" not in out
    assert b'"content":"b"' in out


def test_a_count_that_is_not_certain_is_not_given() -> None:
    subject = exchange({})
    subject.start(200, [(b"content-type", b"text/event-stream")])
    choice = {"index": 0, "delta": {"content": "a</think>b"}, "token_ids": [1, 2, 3, 4], "finish_reason": "stop"}
    run(subject.feed(b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [choice]})))
    usage = b'data: {"id":"c","choices":[],"usage":{"completion_tokens":4}}\n\n'
    assert run(subject.feed(usage)) == usage


@pytest.mark.parametrize("text", ["a b</think>c d", "\na b\n\n</think>\n\nc d"])
def test_with_a_tokenizer_groups_of_tokens_are_told_apart_at_its_markers(tmp_path: Any, text: str) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps({"added_tokens": [{"id": 7, "content": "</think>"}]}))
    subject = exchange({"tokenizer": tokenizer})
    subject.start(200, [(b"content-type", b"text/event-stream")])
    choice = {"index": 0, "delta": {"content": text}, "token_ids": [1, 2, 7, 3, 4]}
    run(subject.feed(b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [choice]})))
    out = run(subject.feed(b'data: {"id":"c","choices":[],"usage":{"completion_tokens":5}}\n\n'))
    assert json.loads(out[6:])["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_a_call_behind_the_marker_of_thinking_leaves_the_count_certain(tmp_path: Any) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps({"added_tokens": [{"id": 7, "content": "</think>"}]}))
    choice: dict[str, Any] = {"logprobs": None, "token_ids": [1, 2, 7, 3, 4, 5, 6, 8]}
    reply = whole(exchange({"tokenizer": tokenizer}), ["a b", "</think>", "\n", *CALL], **choice)
    assert reply["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_the_upstreams_own_count_stands() -> None:
    subject = exchange({})
    streamed(subject, [["a"]])
    usage = {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 77}}
    event = b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [], "usage": usage})
    assert run(subject.feed(event)) == event


def test_a_character_over_several_tokens_goes_with_the_last_of_them() -> None:
    halves = "€".encode()
    subject = exchange({"reasoning_parser": None})
    subject.start(200, [(b"content-type", b"text/event-stream")])
    entries = [entry("bytes:\\xe2", bytes=list(halves[:1])), entry("bytes:\\x82\\xac", bytes=list(halves[1:]))]
    choice = {"index": 0, "delta": {"content": "€"}, "logprobs": {"content": entries}, "finish_reason": None}
    event = b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [choice]})
    run(subject.feed(b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'))
    assert run(subject.feed(event)) == event


SHAPES: dict[str, Any] = {
    "of completions": lambda tokens: {"logprobs": {"tokens": tokens, "token_logprobs": [-1.0] * len(tokens)}},
    "of strings": lambda tokens: {"logprobs": {"content": tokens}},
    "a list": lambda tokens: {"logprobs": [{"token": token} for token in tokens]},
    "ids that are none": lambda tokens: {"token_ids": tokens},
    "of a refusal": lambda tokens: {"logprobs": {"content": None, "refusal": [entry(token) for token in tokens]}},
    "ours and another": lambda tokens: {"logprobs": {"content": [entry(token) for token in tokens], "x": tokens}},
    "without text": lambda tokens: {"logprobs": {"content": [{"logprob": -1.0, "x": token} for token in tokens]}},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chunks", [[["SECRET"], ["</think>", "Hi"], ["!"]], [["SECRET", "</think>", "Hi"], ["!"]]])
def test_no_shape_of_tokens_tells_of_thinking_that_is_not_wanted(shape: str, chunks: list[list[str]]) -> None:
    subject = exchange({}, include_reasoning=False)
    subject.start(200, [(b"content-type", b"text/event-stream")])
    out = b""
    for tokens in chunks:
        choice = {"index": 0, "delta": {"content": "".join(tokens)}, **SHAPES[shape](tokens)}
        out += run(subject.feed(b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [choice]})))
    assert b"Hi" in out + run(subject.close())
    assert b"SECRET" not in out
    tokens = [token for chunk in chunks for token in chunk]
    reply = whole(exchange({}, include_reasoning=False), tokens, **SHAPES[shape](tokens))
    assert "SECRET" not in json.dumps(reply)


def test_tokens_that_are_alike_are_not_taken_for_each_other() -> None:
    """The second " " waits, the first has come with the text before it."""
    subject = exchange({"reasoning_parser": None})
    chunks = streamed(subject, [["a"], [" "], [" "], ["b"], [" "], [" ", "c"]])
    ids = [one for chunk in chunks for choice in chunk["choices"] for one in choice.get("token_ids", ())]
    assert ids == list(range(1, 8))
    texts = [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]]
    assert "".join(filter(None, texts)) == "a  b  c"
    assert trays(chunks) == {"content": ["a", " ", " ", "b", " ", " ", "c"]}


def test_the_id_of_a_token_within_a_text_that_is_left_out_keeps_its_place() -> None:
    tokens = ["</think>", "a", "<|im_end|>", "b", " c"]
    for chunks in cuts(tokens):
        out = streamed(exchange({}), chunks)
        ids = [one for chunk in out for choice in chunk["choices"] for one in choice.get("token_ids", ())]
        assert ids == list(range(1, len(tokens) + 1))
        assert trays(out) == {"content": ["a", "b", " c"]}
