"""One exchange, driven as a shell drives it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from openai._streaming import SSEDecoder
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from streamsieve.parsers.chain import run
from streamsieve.wire.exchange import Exchange, Mode
from streamsieve.wire.settings import Settings

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"port": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
    for name in ("get_tide", "ping")
]
CONTENT_TYPES: Mapping[Mode, bytes] = {
    "stream": b"text/event-stream; charset=utf-8",
    "whole": b"application/json",
    "pass": b"text/plain",
}


@dataclass
class Reply:
    """What one exchange sent: for each `feed` what it returned, then what `close` did."""

    sent: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.sent)

    @property
    def data(self) -> list[Any]:
        """Each event's data as the openai client reads it: JSON, or `[DONE]`."""
        events = [event.data for event in SSEDecoder().iter_bytes(iter([self.body]))]
        return [json.loads(data) if data.startswith("{") else data for data in events]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [chunk for chunk in self.data if isinstance(chunk, dict) and "choices" in chunk]

    @property
    def error(self) -> str | None:
        """The code of the error event that it ended in."""
        last = self.data[-1] if self.data else None
        return str(last["error"]["code"]) if isinstance(last, dict) and "error" in last else None

    @property
    def told(self) -> list[tuple[int, dict[str, Any], str | None]]:
        """Index, delta and finish reason of every choice of every chunk; the ids that we make up are `ID`."""
        choices = [choice for chunk in self.chunks for choice in chunk.get("choices", ())]
        for call in (call for choice in choices for call in choice["delta"].get("tool_calls", ())):
            if call.get("id", "").startswith("chatcmpl-tool-"):
                call["id"] = "ID"
        return [(choice["index"], choice["delta"], choice["finish_reason"]) for choice in choices]

    @property
    def message(self) -> Any:
        """The first choice as the openai client gathers it, as a dict."""
        return self.choice(0)["message"]

    def choice(self, index: int) -> Any:
        state: Any = ChatCompletionStreamState()
        for chunk in self.chunks:
            for _ in state.handle_chunk(ChatCompletionChunk.model_validate(chunk)):
                pass
        return state.current_completion_snapshot.choices[index].to_dict()


Choice = Mapping[str, object]
"""An upstream chunk's one choice; what is not said is as vLLM has it."""


class Driver:
    """Runs exchanges; a request given is merged into one with two tools."""

    def event(self, choice: Choice | bytes, **top: object) -> bytes:
        """One server-sent event as vLLM writes it; `top` is merged into the chunk. Bytes are one already."""
        if isinstance(choice, bytes):
            return choice
        choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None, **choice}
        chunk = {
            "id": "c-1",
            "object": "chat.completion.chunk",
            "created": 17,
            "model": "m",
            "choices": [choice],
            **top,
        }
        return b"data: %b\n\n" % json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode()

    def stream(
        self, settings: Settings, choices: Iterable[Choice | bytes], request: Mapping[str, object] | None = None
    ) -> Reply:
        """Each choice or event in a `feed` of its own."""
        return run(self.exchange(settings, map(self.event, choices), request, "stream"))

    def whole(self, settings: Settings, body: object, request: Mapping[str, object] | None = None) -> Any:
        return json.loads(run(self.exchange(settings, [json.dumps(body).encode()], request, "whole")).body)

    async def exchange(
        self, settings: Settings, pieces: Iterable[bytes], request: Mapping[str, object] | None, mode: Mode
    ) -> Reply:
        body = {"messages": [], "tools": TOOLS, **(request or {})}
        exchange = Exchange(settings, json.dumps(body).encode())
        exchange.start(200, [(b"content-type", CONTENT_TYPES[mode])])
        assert exchange.mode == mode
        try:
            sent = [await exchange.feed(piece) for piece in pieces]
            return Reply([*sent, await exchange.close()])
        finally:
            await exchange.aclose()


@pytest.fixture(scope="session")
def driver() -> Driver:
    return Driver()


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings(reasoning_parser="qwen3", tool_parser="hermes")
