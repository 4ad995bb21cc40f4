"""Every example runs as its first lines say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from streamsieve.backends.loopback import loopback
from streamsieve.backends.replay import replay

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_wrapped_client() -> None:
    with loopback(replay()) as url:
        *first, finished = run("wrapped_client.py", url + "/v1")
    assert first[:3] == [
        "reasoning:  Tides: I should ask for the next two days.",
        "content:    I'll look that up.",
        'tool call:  get_tide {"port": "Brest", "days": 2}',
    ]
    pieces = [line.removeprefix("arguments:  ") for line in first[3:]]
    assert "".join(pieces) == '{"port": "Brest", "days": 2}'
    assert len(pieces) > 3
    assert finished == "finished:   tool_calls"


def test_wrapped_async_client() -> None:
    with loopback(replay()) as url:
        lines = run("wrapped_async_client.py", url + "/v1")
    assert sorted(line.partition(":")[0] for line in lines) == ["first", "second"]
    assert all("'The tool gives two times." in line and "then 'High water in Brest" in line for line in lines)


def test_awaiting_stage() -> None:
    assert run("awaiting_stage.py") == ["content:   (post_note is not allowed.)", "tool call: ['get_tide']"]


@pytest.mark.parametrize("stream", [False, True])
def test_fastapi_app(stream: bool) -> None:
    spec = importlib.util.spec_from_file_location("fastapi_app", EXAMPLES / "fastapi_app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ask: dict[str, Any] = {
        "model": "any",
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": {"name": "get_tide", "parameters": {}}}],
    }
    with loopback(module.app) as url, OpenAI(base_url=url + "/v1", api_key="x") as client:
        if stream:
            with client.chat.completions.stream(**ask) as events:
                choice: Any = events.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(**ask).choices[0]
    assert (choice.message.reasoning, choice.message.content) == ("The tide table knows.", "One moment.")
    assert [call.function.arguments for call in choice.message.tool_calls] == ['{"port": "Brest"}']
    assert choice.finish_reason == "tool_calls"
