"""Streamed chat completions: what the client is told for what the upstream sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from streamsieve.parsers.chain import run
from streamsieve.parsers.events import Event
from streamsieve.parsers.request import Request
from streamsieve.wire.chat.choice import Choice, State
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings
from streamsieve.wire.text_reader import TextReader

HERMES: dict[str, Any] = {"tool_parser": "hermes"}
THINKING: dict[str, Any] = {"tool_parser": "hermes", "reasoning_parser": "deepseek_r1"}
ROLE = {"delta": {"role": "assistant", "content": ""}}
ROLE_OUT = (0, {"role": "assistant"}, None)
STOP = {"finish_reason": "stop"}
DONE = b"data: [DONE]\n\n"
CALL = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Brest"}}\n</tool_call>'
PING = '<tool_call>\n{"name": "ping"}\n</tool_call>'
NO_INDEX = b'data: {"id":"c","created":1,"model":"m","choices":[{"delta":{"content":"a"},"finish_reason":null}]}\n\n'
CALLED = {"id": "call-1", "type": "function", "function": {"name": "ping", "arguments": "{}"}, "index": 0}


def text(content: str, **beside: object) -> dict[str, object]:
    return {"delta": {"content": content}, **beside}


def half(unit: str) -> bytes:
    """An event whose text is one UTF-16 unit."""
    return f'data: {{"id":"c","created":1,"model":"m","choices":[{{"delta":{{"content":"\\u{unit}"}}}}]}}\n\n'.encode()


def start(name: str, index: int = 0) -> dict[str, Any]:
    return {"index": index, "id": "ID", "type": "function", "function": {"name": name, "arguments": ""}}


def arguments(piece: str, index: int = 0) -> dict[str, Any]:
    return {"index": index, "function": {"arguments": piece}}


# name, settings, request, upstream, what the client is told: (index, delta, finish_reason)
TABLE: list[tuple[str, dict[str, Any], dict[str, Any], list[Any], list[Any]]] = [
    (
        "text goes through, one finish chunk",
        HERMES,
        {},
        [ROLE, text("Hi"), text(" you"), STOP, DONE],
        [ROLE_OUT, (0, {"content": "Hi"}, None), (0, {"content": " you"}, None), (0, {}, "stop")],
    ),
    (
        "the role is added where the upstream has none, and told once where it repeats it",
        HERMES,
        {},
        [text("a"), {"delta": {"role": "assistant", "content": "b"}}, STOP],
        [(0, {"role": "assistant", "content": "a"}, None), (0, {"content": "b"}, None), (0, {}, "stop")],
    ),
    (
        "a role beside a held text goes out at once",
        HERMES,
        {},
        [{"delta": {"role": "assistant", "content": "<tool"}}, text("s"), STOP],
        [ROLE_OUT, (0, {"content": "<tools"}, None), (0, {}, "stop")],
    ),
    (
        "a reply of nothing",
        HERMES,
        {},
        [STOP, DONE],
        [(0, {"role": "assistant"}, "stop")],
    ),
    (
        "trays",
        THINKING,
        {},
        [ROLE, text("<think>"), text("Hm"), text("</think>"), text("Hi"), STOP],
        [ROLE_OUT, (0, {"reasoning": "Hm"}, None), (0, {"content": "Hi"}, None), (0, {}, "stop")],
    ),
    (
        "one event, one chunk, in the order written",
        THINKING,
        {},
        [ROLE, text(f"Hm</think>Hi{PING}"), STOP],
        [
            ROLE_OUT,
            (0, {"reasoning": "Hm"}, None),
            (0, {"content": "Hi"}, None),
            (0, {"tool_calls": [start("ping")]}, None),
            (0, {"tool_calls": [arguments("{}")]}, None),
            (0, {}, "tool_calls"),
        ],
    ),
    (
        "a call: id, type and name once, then arguments only",
        HERMES,
        {},
        [ROLE, text('<tool_call>\n{"name": "get_tide", "arguments": {"po'), text('rt": "x"}}\n</tool_call>'), STOP],
        [
            ROLE_OUT,
            (0, {"tool_calls": [start("get_tide")]}, None),
            (0, {"tool_calls": [arguments('{"po')]}, None),
            (0, {"tool_calls": [arguments('rt": "x"}')]}, None),
            (0, {}, "tool_calls"),
        ],
    ),
    (
        "text with the finish reason: text, what was held, then the finish",
        HERMES,
        {},
        [ROLE, text("Hi <tool", finish_reason="length")],
        [ROLE_OUT, (0, {"content": "Hi"}, None), (0, {"content": " <tool"}, None), (0, {}, "length")],
    ),
    (
        "a named tool choice keeps its stop",
        HERMES,
        {"tool_choice": {"type": "function", "function": {"name": "ping"}}},
        [ROLE, text(PING), STOP],
        [
            ROLE_OUT,
            (0, {"tool_calls": [start("ping")]}, None),
            (0, {"tool_calls": [arguments("{}")]}, None),
            (0, {}, "stop"),
        ],
    ),
    (
        "a second finish chunk is dropped, and so is a second [DONE]",
        HERMES,
        {},
        [ROLE, text("a"), STOP, STOP, DONE, DONE],
        [ROLE_OUT, (0, {"content": "a"}, None), (0, {}, "stop")],
    ),
    (
        "what comes after the finish is passed on without another finish",
        HERMES,
        {},
        [ROLE, STOP, text("late", finish_reason="stop"), DONE],
        [ROLE_OUT, (0, {}, "stop"), (0, {"content": "late"}, None)],
    ),
    (
        "no finish chunk: what was held comes before [DONE], and no finish reason is invented",
        HERMES,
        {},
        [ROLE, text("a <tool"), DONE],
        [ROLE_OUT, (0, {"content": "a"}, None), (0, {"content": " <tool"}, None)],
    ),
    (
        "neither finish chunk nor [DONE]",
        HERMES,
        {},
        [ROLE, text("a <tool")],
        [ROLE_OUT, (0, {"content": "a"}, None), (0, {"content": " <tool"}, None)],
    ),
    (
        "a delta of null",
        HERMES,
        {},
        [ROLE, text("a <tool"), {"delta": None, "finish_reason": "stop"}],
        [ROLE_OUT, (0, {"content": "a"}, None), (0, {"content": " <tool"}, None), (0, {}, "stop")],
    ),
    (
        "an empty finish reason is none",
        HERMES,
        {},
        [ROLE, text("a", finish_reason=""), text("b", finish_reason=""), STOP],
        [ROLE_OUT, (0, {"content": "a"}, None), (0, {"content": "b"}, None), (0, {}, "stop")],
    ),
    (
        "half a character waits for its other half",
        HERMES,
        {},
        [ROLE, text("a"), half("d83d"), half("de00"), STOP],
        [ROLE_OUT, (0, {"content": "a"}, None), (0, {"content": "\N{GRINNING FACE}"}, None), (0, {}, "stop")],
    ),
    (
        "and is passed on where that does not come",
        HERMES,
        {},
        [ROLE, text("a"), half("d83d"), text("b"), half("de00"), half("d83d"), STOP],
        [
            ROLE_OUT,
            (0, {"content": "a"}, None),
            (0, {"content": "\ud83db"}, None),
            (0, {"content": "\ude00"}, None),
            (0, {"content": "\ud83d"}, None),
            (0, {}, "stop"),
        ],
    ),
    (
        "no index",
        HERMES,
        {},
        [NO_INDEX, NO_INDEX],
        [(0, {"role": "assistant", "content": "a"}, None), (0, {"content": "a"}, None)],
    ),
    (
        "reasoning in the other field",
        THINKING | {"reasoning_field": "reasoning_content"},
        {},
        [ROLE, text("Hm</think>Hi"), STOP],
        [ROLE_OUT, (0, {"reasoning_content": "Hm"}, None), (0, {"content": "Hi"}, None), (0, {}, "stop")],
    ),
    (
        "reasoning in both fields",
        THINKING | {"reasoning_field": "both"},
        {},
        [ROLE, text("Hm</think>Hi"), STOP],
        [
            ROLE_OUT,
            (0, {"reasoning": "Hm", "reasoning_content": "Hm"}, None),
            (0, {"content": "Hi"}, None),
            (0, {}, "stop"),
        ],
    ),
    (
        "reasoning that the request does not want",
        THINKING,
        {"include_reasoning": False},
        [ROLE, text("Hm"), text("</think>Hi"), STOP],
        [ROLE_OUT, (0, {"content": "Hi"}, None), (0, {}, "stop")],
    ),
    (
        "choices have parsers of their own",
        THINKING,
        {"n": 2},
        [
            ROLE,
            ROLE | {"index": 1},
            text("Plan A</think><tool_"),
            text("Plan B</think>Hello", index=1),
            text(f"call>{PING.removeprefix('<tool_call>')}"),
            text(" there", index=1),
            STOP | {"index": 1},
            STOP,
        ],
        [
            ROLE_OUT,
            (1, {"role": "assistant"}, None),
            (0, {"reasoning": "Plan A"}, None),
            (1, {"reasoning": "Plan B"}, None),
            (1, {"content": "Hello"}, None),
            (0, {"tool_calls": [start("ping")]}, None),
            (0, {"tool_calls": [arguments("{}")]}, None),
            (1, {"content": " there"}, None),
            (1, {}, "stop"),
            (0, {}, "tool_calls"),
        ],
    ),
    (
        "choices start in order, though the first is held",
        HERMES,
        {"n": 2},
        [text("<tool"), text("b", index=1), text("s"), STOP, STOP | {"index": 1}],
        [
            ROLE_OUT,
            (1, {"role": "assistant", "content": "b"}, None),
            (0, {"content": "<tools"}, None),
            (0, {}, "stop"),
            (1, {}, "stop"),
        ],
    ),
    (
        "empty and null trays are no sign of a parser, and are left out",
        HERMES,
        {},
        [{"delta": {"content": "a", "reasoning": None, "reasoning_content": "", "tool_calls": []}}, text(PING), STOP],
        [
            (0, {"role": "assistant", "content": "a"}, None),
            (0, {"tool_calls": [start("ping")]}, None),
            (0, {"tool_calls": [arguments("{}")]}, None),
            (0, {}, "tool_calls"),
        ],
    ),
    (
        "an upstream that parses calls: its choice passes, what was held first",
        HERMES,
        {},
        [ROLE, text("a <tool"), {"delta": {"tool_calls": [CALLED]}}, text(PING), {"finish_reason": "tool_calls"}],
        [
            ROLE_OUT,
            (0, {"content": "a"}, None),
            (0, {"content": " <tool"}, None),
            (0, {"tool_calls": [CALLED]}, None),
            (0, {"content": PING}, None),
            (0, {}, "tool_calls"),
        ],
    ),
    (
        "an upstream that parses reasoning: only the field is renamed",
        HERMES,
        {},
        [ROLE, {"delta": {"reasoning_content": "Hm", "reasoning": None}}, text("</think>"), STOP],
        [ROLE_OUT, (0, {"reasoning": "Hm"}, None), (0, {"content": "</think>"}, None), (0, {}, "stop")],
    ),
    (
        "what it sends then is not ours to leave out, but for a second role",
        HERMES,
        {},
        [text("a"), {"delta": {"role": "assistant", "tool_calls": [CALLED]}}, text("")],
        [
            (0, {"role": "assistant", "content": "a"}, None),
            (0, {"tool_calls": [CALLED]}, None),
            (0, {"content": ""}, None),
        ],
    ),
    (
        "an empty reasoning field is left out, one that is no text stays",
        {},
        {},
        [{"delta": {"content": "a", "reasoning_content": ""}}, {"delta": {"reasoning_content": {"x": 1}}}],
        [(0, {"content": "a"}, None), (0, {"reasoning_content": {"x": 1}}, None)],
    ),
    (
        "the role waits with a held text",
        HERMES,
        {},
        [text("<tool"), text("s"), STOP],
        [(0, {"role": "assistant", "content": "<tools"}, None), (0, {}, "stop")],
    ),
    (
        "no parser at all: only the field is renamed",
        {"reasoning_field": "reasoning_content"},
        {},
        [{"delta": {"role": "assistant", "reasoning": "Hm"}}, text(PING), STOP],
        [(0, {"role": "assistant", "reasoning_content": "Hm"}, None), (0, {"content": PING}, None), (0, {}, "stop")],
    ),
    (
        "a parsed reasoning that the request does not want",
        {},
        {"include_reasoning": False},
        [ROLE, {"delta": {"reasoning": "Hm"}}, text("Hi"), STOP],
        [(0, {"role": "assistant", "content": ""}, None), (0, {"content": "Hi"}, None), (0, {}, "stop")],
    ),
    (
        "content in parts is not ours to read",
        HERMES,
        {},
        [ROLE, text([{"type": "text", "text": PING}]), STOP],  # type: ignore[arg-type]
        [ROLE_OUT, (0, {"content": [{"type": "text", "text": PING}]}, None), (0, {}, "stop")],
    ),
]


@pytest.mark.parametrize(
    ("options", "request_", "upstream", "expected"), [pytest.param(*row[1:], id=row[0]) for row in TABLE]
)
def test_what_the_client_is_told(
    driver: Any, options: dict[str, Any], request_: dict[str, Any], upstream: list[Any], expected: list[Any]
) -> None:
    reply = driver.stream(Settings(**options), upstream, request_)
    assert reply.told == expected
    assert reply.data.count("[DONE]") == (DONE in upstream)
    assert all(chunk.keys() >= {"id", "created", "model"} for chunk in reply.chunks)


class Recorder:
    """A parser that notes what it is fed."""

    feed_at_once: Callable[[str], list[Event]] | None = None

    def __init__(self) -> None:
        self.fed: list[object] = []

    async def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        self.fed.append((text, token_ids))
        return []

    async def finish(self, reason: str | None) -> list[Event]:
        self.fed.append(reason)
        return []

    async def aclose(self) -> None:
        self.fed.append("closed")


def test_what_a_parser_is_fed() -> None:
    recorder = Recorder()
    choice = Choice(0, TextReader(recorder, special=None, max_held=10**6), State.PARSING, Request(), Settings())
    chunks: list[dict[str, object]] = [
        text("a", token_ids=[1, 2]),
        text("b"),
        text(""),
        text("c", finish_reason="stop"),
    ]
    for chunk in chunks:
        run(choice.read(chunk, keep=False))
    assert recorder.fed == [("a", [1, 2]), ("b", None), ("c", None), "stop"]


BROKE = "reply_broke_off"
ERROR = b'data: {"error": {"code": "upstream"}}\n\n'
SORTED = {"delta": {"reasoning": "Hm"}}

# settings, upstream, the code of the error event that the stream ends in
ENDS: list[tuple[str, dict[str, Any], list[Any], str | None]] = [
    ("a finish chunk and [DONE]", HERMES, [ROLE, STOP, DONE], None),
    ("a finish chunk alone", HERMES, [ROLE, STOP], None),
    ("[DONE] alone", HERMES, [ROLE, text("a <tool"), DONE], None),
    ("neither", HERMES, [ROLE, text("a <tool")], BROKE),
    ("a role alone", HERMES, [ROLE], BROKE),
    ("half an event", HERMES, [ROLE, text("a <tool"), b'data: {"choices'], BROKE),
    ("one of two choices", HERMES, [ROLE, ROLE | {"index": 1}, STOP], BROKE),
    ("both", HERMES, [ROLE, ROLE | {"index": 1}, STOP, STOP | {"index": 1}], None),
    ("what the upstream sorts", HERMES, [ROLE, SORTED], BROKE),
    ("what the upstream sorts, with a finish", HERMES, [ROLE, SORTED, STOP], None),
    ("an error of the upstream's", HERMES, [ROLE, text("a"), ERROR], "upstream"),
    ("nothing of a reply", HERMES, [b": ping\n\n"], None),
    ("nobody reads it", {}, [ROLE, text("a")], None),
]


@pytest.mark.parametrize(("options", "upstream", "code"), [pytest.param(*row[1:], id=row[0]) for row in ENDS])
def test_how_a_stream_ends(driver: Any, options: Any, upstream: Any, code: str | None) -> None:
    reply = driver.stream(Settings(**options), upstream)
    assert reply.error == code
    assert reply.body.count(b'"error"') == (code is not None)
    texts = "".join(delta.get("content") or "" for _, delta, _ in reply.told)
    given = [one["delta"] for one in upstream if isinstance(one, dict) and "delta" in one]
    assert texts == "".join(delta.get("content") or "" for delta in given)


def test_a_stream_that_broke_off_says_so_once(driver: Any) -> None:
    exchange = Exchange(Settings(**HERMES), b'{"messages": []}')
    exchange.start(200, [(b"content-type", b"text/event-stream")])
    run(exchange.feed(driver.event(ROLE)))
    assert BROKE.encode() in run(exchange.close())
    assert run(exchange.close()) == run(exchange.break_off()) == b""
