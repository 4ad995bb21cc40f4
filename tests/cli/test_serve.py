"""`streamsieve serve`, as a process: what it serves, and what stops its start."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import pytest

from streamsieve.cli.main import main

MESSAGES: Any = [{"role": "user", "content": "Tides?"}]
TOOLS: Any = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]
HERMES = ("--tool-parser", "hermes", "--reasoning-parser", "qwen3")


@contextmanager
def served(*arguments: str, stop: signal.Signals = signal.SIGINT, **environment: str) -> Iterator[str]:
    """The root URL of `streamsieve serve`; it must end without an error."""
    command = [sys.executable, "-m", "streamsieve.cli", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r" on (http://\S+)/v1, ", line)
        assert found, line
        try:
            yield found[1]
        finally:
            process.send_signal(stop)
            assert "Traceback" not in process.stderr.read()
    assert process.returncode in (0, -stop)


def answer(url: str, **more: Any) -> Any:
    with openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
        return client.chat.completions.create(model="hermes", messages=MESSAGES, tools=TOOLS, **more).choices[0]


def test_recorded_replies_with_parsers() -> None:
    with served(*HERMES) as url:
        assert url.startswith("http://127.0.0.1:")
        choice = answer(url)
        assert "date" in httpx2.get(url + "/health").headers
    assert choice.message.reasoning == "Tides: I should ask for the next two days."
    assert [call.function.name for call in choice.message.tool_calls] == ["get_tide"]


def test_recorded_replies_without_parsers_are_raw() -> None:
    with served(stop=signal.SIGTERM) as url:
        assert answer(url).message.content.startswith("<think>")


def test_in_front_of_an_upstream() -> None:
    with served() as upstream, served("--upstream", upstream + "/v1", *HERMES) as url:
        choice = answer(url)
        models = httpx2.get(url + "/v1/models")
    assert [call.function.name for call in choice.message.tool_calls] == ["get_tide"]
    assert models.json()["data"][0]["object"] == "model"
    assert len(models.headers.get_list("date")) == 1


def test_the_options_reach_the_wire() -> None:
    options = (*HERMES[2:], "--tool-call-parser", "hermes", "--enable-auto-tool-choice")
    with served(*options, "--reasoning-field", "reasoning_content", "--prompt-tail", "</think>") as url:
        extra = {"replay": {"raw": "a</think>b"}}
        assert answer(url, extra_body=extra).message.content == "ab"
    with served(*options, "--reasoning-field", "both", "--deliver", "complete") as url:
        message = answer(url).message
        assert message.reasoning == message.reasoning_content == "Tides: I should ask for the next two days."
        broken = '</think><tool_call>{"name": "f", "arguments": {"a": 1,,}}</tool_call>'
        with openai.OpenAI(base_url=url + "/v1", api_key="x") as client:
            extra = {"replay": {"raw": broken}}
            ask: Any = {"model": "hermes", "messages": MESSAGES, "tools": TOOLS, "extra_body": extra}
            chunks = list(client.chat.completions.create(**ask, stream=True))
        assert not any(chunk.choices[0].delta.tool_calls for chunk in chunks)


def test_the_responses_api_is_served_by_chat_completions() -> None:
    ask: Any = {"model": "hermes", "input": "Tides?", "tools": [{"type": "function", **TOOLS[0]["function"]}]}
    with (
        served(*HERMES) as upstream,
        served("--upstream", upstream, "--responses", "translate", *HERMES) as proxy,
    ):
        for url in (upstream, proxy):
            with openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
                output = client.responses.create(**ask).output
            assert [item.type for item in output] == ["reasoning", "message", "function_call"]


@pytest.mark.parametrize("by_environment", [False, True])
def test_the_key(by_environment: bool) -> None:
    arguments, environment = ((), {"STREAMSIEVE_API_KEY": "k"}) if by_environment else (("--api-key", "k"), {})
    with served(*arguments, **environment) as url:
        assert httpx2.get(url + "/v1/models").status_code == 401
        assert httpx2.get(url + "/v1/models", headers={"authorization": "Bearer k"}).status_code == 200


def test_the_upstreams_key() -> None:
    with (
        served("--api-key", "theirs") as upstream,
        served("--upstream", upstream, "--api-key", "ours", STREAMSIEVE_UPSTREAM_API_KEY="theirs") as url,
    ):
        assert httpx2.get(url + "/v1/models", headers={"authorization": "Bearer theirs"}).status_code == 401
        assert httpx2.get(url + "/v1/models", headers={"authorization": "Bearer ours"}).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tool-parser", "hermse"), ["tool_parser", "'hermse'", "Choices: hermes, "]),
        (("--reasoning-parser", "qwen"), ["reasoning_parser", "Choices: qwen3, "]),
        (("--tool-parser", "openai", "--reasoning-parser", "qwen3"), ["openai", "qwen3"]),
        (("--stage", "nothing"), ["stages", "nothing"]),
        (("--enable-auto-tool-choice",), ["--enable-auto-tool-choice", "--tool-parser", "hermes"]),
        (("--enable-auto-tool-choice", "--tool-parser", "none"), ["--tool-parser", "hermes"]),
        (("--upstream", "localhost:8000"), ["upstream", "http://"]),
        (("--api-key", ""), ["api_key"]),
        (("--api-key", "two words"), ["api_key"]),
    ],
)
def test_what_cannot_work_stops_the_start(
    arguments: tuple[str, ...], says: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in says), error


@pytest.mark.parametrize(
    "arguments",
    [
        ("--port", "65536"),
        ("--port", "x"),
        ("--chunk", "0"),
        ("--delay", "-1"),
        ("--delay", "nan"),
        ("--reasoning-field", "thoughts"),
        ("--deliver", "late"),
    ],
)
def test_a_wrong_command_line_is_status_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["serve", *arguments])
    assert exit.value.code == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "host.invalid"])
def test_an_address_that_cannot_be_had_is_status_2(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--host", host, "--port", port]) == 2
    assert f"cannot listen on {host} port {port}" in capsys.readouterr().err
