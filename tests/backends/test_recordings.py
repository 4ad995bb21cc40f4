"""The recordings hold to the contract, and our own renderer can write what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from streamsieve.backends.application import application
from streamsieve.backends.recording import Recording, captured, recordings
from streamsieve.backends.replay import replay
from streamsieve.parsers import registry
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector, Message
from streamsieve.wire.settings import Settings

TIDE = ("get_tide", {"port": "Brest", "days": 2})
NOTE = ("post_note", {"title": "Brest", "body": 'Sail out on the ebb:\n04:12 "early" tide, réveil 3 h.'})
CALLS = {"answer": [], "call": [TIDE], "parallel": [TIDE, NOTE]}
REQUEST = Request.from_body(
    {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_tide",
                    "parameters": {"properties": {"port": {"type": "string"}, "days": {"type": "integer"}}},
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "post_note",
                    "parameters": {"properties": {"title": {"type": "string"}, "body": {"type": "string"}}},
                },
            },
        ]
    }
)

every_scene = pytest.mark.parametrize(
    ("recording", "scene"),
    [(recording, scene) for recording in recordings().values() for scene in recording.scenes],
    ids=lambda value: value if isinstance(value, str) else value.family,
)


def format_of(recording: Recording) -> Format:
    format = registry.select(tool_parser=recording.tool_parser, reasoning_parser=recording.reasoning_parser)
    assert format is not None
    return format


def parsed(format: Format, raw: str, size: int) -> Message:
    machine = format.machine(REQUEST, whole=size == len(raw))
    collector = Collector()
    for start in range(0, len(raw), size):
        collector.add(machine.feed(raw[start : start + size]))
    collector.add(machine.finish("stop"))
    return collector.message("stop", REQUEST)


def without_ids(message: Message) -> Message:
    return replace(message, tool_calls=[replace(call, id="") for call in message.tool_calls])


@every_scene
def test_a_scene_fills_the_trays(recording: Recording, scene: str) -> None:
    raw = recording.scenes[scene]
    format = format_of(recording)
    message = parsed(format, raw, len(raw))
    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == CALLS[scene]
    assert (message.reasoning is None) == (recording.reasoning_parser is None)
    assert (message.content is None) == (scene == "parallel" or (recording.family, scene) == ("pythonic", "call"))
    assert message.repairs == []
    for size in (1, 4):
        assert without_ids(parsed(format, raw, size)) == without_ids(message)


@every_scene
def test_the_renderer_can_say_it(recording: Recording, scene: str) -> None:
    raw = recording.scenes[scene]
    format = format_of(recording)
    message = without_ids(parsed(format, raw, len(raw)))
    written = format.render(message, REQUEST)
    again = parsed(format, written, len(written))
    for one, other in zip(message.tool_calls, again.tool_calls, strict=True):
        assert json.loads(one.arguments) == json.loads(other.arguments)
        other.arguments = one.arguments
    assert without_ids(again) == message


@every_scene
def test_the_text_is_whole_lines_of_what_a_model_writes(recording: Recording, scene: str) -> None:
    """A recording ends in its end-of-turn token, so none lost a line break to the file."""
    assert recording.scenes[scene].endswith((">", "</s>"))


def test_the_nine_families_are_there() -> None:
    assert list(recordings()) == [
        "deepseek_v3",
        "glm45",
        "harmony",
        "hermes",
        "kimi_k2",
        "llama_json",
        "mistral",
        "pythonic",
        "qwen3",
    ]
    assert all(list(recording.scenes) == ["answer", "call", "parallel"] for recording in recordings().values())


async def test_captured_replies_are_played_again(tmp_path: Path) -> None:
    file = tmp_path / "captured.jsonl"
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", capture=file)
    body = {"model": "hermes", "messages": [{"role": "user", "content": "Tides?"}], "stream": True}
    transport = httpx2.ASGITransport(app=application(replay(), settings))
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        first = await client.post("/v1/chat/completions", json=body)
    library = captured(file)
    (name,) = library
    transport = httpx2.ASGITransport(app=application(replay(library=library), Settings(reasoning_parser="qwen3")))
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        again = await client.post("/v1/chat/completions", json={**body, "model": name})
    assert _text(again.text) == _text(first.text) != ""


@pytest.mark.parametrize(("text", "message"), [("", "there is no case"), ("{}", "replay: .*:1: ")])
def test_a_file_without_cases_cannot_be_played(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        captured(tmp_path / "x.jsonl")


def _text(stream: str) -> str:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return "".join(delta.get("reasoning", "") + (delta.get("content") or "") for delta in deltas)
