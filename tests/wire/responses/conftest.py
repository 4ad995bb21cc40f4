"""Responses as they come out of one exchange, held to the grammar of the Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from openai import omit
from openai._streaming import SSEDecoder
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from streamsieve.parsers.chain import run
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

RAW = (
    "<think>\nThe tide — I look.\n</think>\n\nOne moment. 😀\n"
    '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Bodø", "days": 2}}\n</tool_call>'
)
TOOLS = [
    {
        "type": "function",
        "name": name,
        "parameters": {"type": "object", "properties": {"port": {"type": "string"}, "days": {"type": "integer"}}},
    }
    for name in ("get_tide", "ping")
]
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
Parsers = Mapping[str, str]


def trays(output: Sequence[Mapping[str, Any]]) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    """Reasoning, content, and name and arguments of each call, of the items of a response."""
    reasoning = [part["text"] for item in output if item["type"] == "reasoning" for part in reasoning_parts(item)]
    content = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
    calls = [(item["name"], item["arguments"]) for item in output if item["type"] == "function_call"]
    return "".join(reasoning) or None, "".join(content) or None, calls


def reasoning_parts(item: Mapping[str, Any]) -> list[Any]:
    return [*item["summary"], *item.get("content", ())]


@dataclass
class Streamed:
    """What one streamed exchange sent."""

    sent: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.sent)

    @property
    def events(self) -> list[dict[str, Any]]:
        read = SSEDecoder().iter_bytes(iter([self.body]))
        events = [(event.event, json.loads(event.data)) for event in read if event.data != "[DONE]"]
        assert [name for name, _ in events] == [event["type"] for _, event in events]
        return [event for _, event in events]

    @property
    def told(self) -> list[str]:
        """The types of the events without `response.`; several of one type in a row are one."""
        types = [event["type"].removeprefix("response.") for event in self.events]
        return [kind for place, kind in enumerate(types) if place == 0 or kind != types[place - 1]]

    @property
    def response(self) -> dict[str, Any]:
        """The response that the last event holds."""
        response: dict[str, Any] = self.events[-1]["response"]
        return response

    @property
    def nameless(self) -> list[dict[str, Any]]:
        """The events with the ids that we make up numbered in the order in which they come."""
        text = self.body.decode()
        made = dict.fromkeys(word for word in text.split('"') if word.startswith(PREFIXES))
        for number, name in enumerate(made):
            text = text.replace(name, f"ID-{number}")
        return Streamed([text.encode()]).events

    def check(self) -> Streamed:
        """Hold the events to the grammar, and to what the openai client makes of them."""
        events = self.events
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
        assert [event["type"] in TERMINAL for event in events] == [False] * (len(events) - 1) + [True]
        _check_items(events)
        state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
        for event in events:
            seen = state.handle_event(EVENTS.validate_python(event))
        assert seen[-1].response.status == self.response["status"]
        Response.model_validate(self.response, strict=True)
        return self


PREFIXES = ("rs_", "msg_", "fc_", "resp_", "call_", "chatcmpl-tool-")


def _check_items(events: Sequence[dict[str, Any]]) -> None:
    """Items begin in order and end once; what their deltas say is what they are in the end, and in the response."""
    items: list[dict[str, Any]] = []
    texts: dict[int, str] = {}
    done: dict[int, Any] = {}
    for event in events:
        match event["type"].removeprefix("response."):
            case "output_item.added":
                assert event["output_index"] == len(items)
                assert event["item"]["status"] == "in_progress"
                items.append(event["item"])
                texts[event["output_index"]] = ""
            case kind if kind.endswith(".delta"):
                assert event["item_id"] == items[event["output_index"]]["id"]
                assert event["output_index"] not in done
                assert event["delta"]
                texts[event["output_index"]] += event["delta"]
            case "output_item.done":
                place, item = event["output_index"], event["item"]
                assert place not in done
                assert item["id"] == items[place]["id"]
                assert item["status"] in ("completed", "incomplete")
                assert texts[place] == text_of(item)
                done[place] = item
            case "output_text.done" | "reasoning_text.done" | "reasoning_summary_text.done":
                assert event["text"] == texts[event["output_index"]]
            case "function_call_arguments.done":
                assert event["arguments"] == texts[event["output_index"]]
    assert [done[place] for place in sorted(done)] == events[-1]["response"]["output"]


def text_of(item: Mapping[str, Any]) -> str:
    match item["type"]:
        case "function_call":
            return str(item["arguments"])
        case "reasoning":
            return "".join(part["text"] for part in reasoning_parts(item))
    return "".join(part.get("text") or part["refusal"] for part in item["content"])


class Driver:
    """Runs exchanges of the Responses API; a request given is merged into one with two tools."""

    def exchange(self, settings: Settings, request: Mapping[str, object] | None = None) -> Exchange:
        body = {"model": "m", "input": "Tide?", "tools": TOOLS, **(request or {})}
        return Exchange(settings, json.dumps(body).encode(), path="/v1/responses")

    def stream(
        self, settings: Settings, events: Iterable[bytes], request: Mapping[str, object] | None = None
    ) -> Streamed:
        """Each event in a `feed` of its own."""
        return run(self._stream(settings, events, {"stream": True, **(request or {})}))

    async def _stream(
        self, settings: Settings, events: Iterable[bytes], request: Mapping[str, object] | None
    ) -> Streamed:
        exchange = self.exchange(settings, request)
        exchange.start(200, [(b"content-type", b"text/event-stream")])
        assert exchange.mode == "stream"
        try:
            sent = [await exchange.feed(event) for event in events]
            return Streamed([*sent, await exchange.close()])
        finally:
            await exchange.aclose()

    def whole(self, settings: Settings, body: object, request: Mapping[str, object] | None = None) -> Any:
        return run(self._whole(settings, body, request))

    async def _whole(self, settings: Settings, body: object, request: Mapping[str, object] | None) -> Any:
        exchange = self.exchange(settings, request)
        exchange.start(200, [(b"content-type", b"application/json")])
        assert exchange.mode == "whole"
        await exchange.feed(body if isinstance(body, bytes) else json.dumps(body).encode())
        sent = await exchange.close()
        await exchange.aclose()
        try:
            return json.loads(sent)
        except ValueError:
            return sent


class Chat:
    """A chat completions upstream, as vLLM writes."""

    def event(self, delta: Mapping[str, object] | None, finish: str | None = None, **more: object) -> bytes:
        """A chunk with this delta; of None, one without choices."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = {
            "id": "c-1",
            "object": "chat.completion.chunk",
            "created": 17,
            "model": "m",
            "choices": [] if delta is None else [choice],
            **more,
        }
        return sse(chunk)

    def reply(self, raw: str, size: int = 4, finish: str | None = "stop") -> list[bytes]:
        """A whole stream of raw text, with its usage and `[DONE]`."""
        pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
        return [
            self.event({"role": "assistant", "content": ""}),
            *(self.event({"content": piece}) for piece in pieces),
            self.event({"content": ""}, finish),
            self.event(None, usage=USAGE),
            DONE,
        ]

    def whole(self, message: Mapping[str, object], finish: str | None = "stop") -> dict[str, Any]:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        return {
            "id": "c-1",
            "object": "chat.completion",
            "created": 17,
            "model": "m",
            "choices": [choice],
            "usage": USAGE,
        }


class Upstream:
    """An upstream that speaks the Responses API and leaves its text raw, as vLLM does without parsers."""

    def reply(self, raw: str, size: int = 4, **end: object) -> list[bytes]:
        pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
        message = {"id": "msg_u", "type": "message", "role": "assistant", "status": "completed"}
        part = {"type": "output_text", "text": raw, "annotations": [], "logprobs": None}
        where = {"item_id": "msg_u", "output_index": 0, "content_index": 0}
        item = {**message, "content": [part]}
        opened = {**message, "status": "in_progress", "content": []}
        empty = {**part, "text": "", "logprobs": []}
        bodies: list[dict[str, object]] = [
            {"type": "response.created", "response": self.whole([], status="in_progress")},
            {"type": "response.in_progress", "response": self.whole([], status="in_progress")},
            {"type": "response.output_item.added", "output_index": 0, "item": opened},
            {"type": "response.content_part.added", **where, "part": empty},
            *({"type": "response.output_text.delta", **where, "delta": text, "logprobs": []} for text in pieces),
            {"type": "response.output_text.done", **where, "text": raw, "logprobs": []},
            {"type": "response.content_part.done", **where, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": self.whole([item], **end)},
        ]
        return self.numbered(bodies)

    def numbered(self, bodies: Iterable[Mapping[str, object]]) -> list[bytes]:
        return [sse({**body, "sequence_number": number}, str(body["type"])) for number, body in enumerate(bodies)]

    def whole(self, output: Sequence[object], **more: object) -> dict[str, Any]:
        return {
            "id": "resp_u",
            "object": "response",
            "created_at": 17,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "model": "m",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **more,
        }

    def message(self, text: str) -> dict[str, Any]:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": None}
        return {"id": "msg_u", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 5,
    "total_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 4},
}
DONE = b"data: [DONE]\n\n"


def sse(data: object, event: str | None = None) -> bytes:
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return (f"event: {event}\n".encode() if event else b"") + b"data: %b\n\n" % line


@pytest.fixture(scope="session")
def driver() -> Driver:
    return Driver()


@pytest.fixture(scope="session")
def chat() -> Chat:
    return Chat()


@pytest.fixture(scope="session")
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture(scope="session")
def parsers() -> Parsers:
    return {"reasoning_parser": "qwen3", "tool_parser": "hermes"}


@pytest.fixture(scope="session")
def translating() -> Settings:
    return Settings(reasoning_parser="qwen3", tool_parser="hermes", responses="translate")


@pytest.fixture(scope="session")
def plain() -> Settings:
    """Without thinking."""
    return Settings(tool_parser="hermes", responses="translate")


@pytest.fixture(scope="session")
def parsing() -> Settings:
    return Settings(reasoning_parser="qwen3", tool_parser="hermes")


@pytest.fixture
def raw() -> str:
    """A reply in the formats `qwen3` (reasoning) and `hermes` (calls)."""
    return RAW


@pytest.fixture(scope="session")
def trays_of() -> Any:
    return trays
