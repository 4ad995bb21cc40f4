"""`streamsieve detect`, and `streamsieve serve` with a model at hand."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamsieve.cli.main import main

TEMPLATES = Path(__file__).parents[1] / "templates"
DEEPSEEK = str(TEMPLATES / "deepseek_v31.jinja")


def test_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", DEEPSEEK]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "tool parser       deepseek_v31",
        "reasoning parser  deepseek_v3",
        "chosen by         its chat template",
        "thinking          thinking: True on, False off, default off",
        "prompt ends in    '<｜Assistant｜></think>' (thinking not set)",
        "prompt ends in    '<｜Assistant｜><think>' (thinking on)",
        "prompt ends in    '<｜Assistant｜></think>' (thinking off)",
        "check             what the chat template writes comes back as it went in",
        "                  the template leaves thinking out of past turns, so the check wrote it as the parser has it",
    ]


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    source = str(TEMPLATES / "glm45.jinja")
    assert main(["detect", "--json", source]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "model": source,
        "tool_parser": "glm45",
        "reasoning_parser": "glm45",
        "found_by": "template",
        "thinking": {"key": "enable_thinking", "on": True, "off": False, "default": "on"},
        "prompt_tails": {
            "default": "<|assistant|>",
            "on": "<|assistant|>",
            "off": "/nothink<|assistant|>\n<think></think>",
        },
        "checked": True,
        "notes": [],
    }


def test_a_name_is_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "Qwen/Qwen3-8B"]) == 0
    assert "none: no template" in capsys.readouterr().out
    assert main(["detect", "Qwen/Qwen3-8B", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tool_parser"], found["checked"], found["prompt_tails"]) == ("hermes", False, None)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_where_nothing_fits(capsys: pytest.CaptureFixture[str], form: list[str]) -> None:
    assert main(["detect", *form, str(TEMPLATES / "no_tools.jinja")]) == 1
    said = capsys.readouterr()
    assert "no tool calls and no thinking" in (json.loads(said.out)["error"] if form else said.err)


def test_parsers_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", DEEPSEEK, "--tool-parser", "deepseek_v31", "--reasoning-parser", "deepseek_v3"]) == 0
    assert "chosen by         you" in capsys.readouterr().out
    assert main(["detect", DEEPSEEK, "--tool-parser", "hermes"]) == 1
    assert "would misread" in capsys.readouterr().err


def test_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "./nowhere"]) == 2
    assert "there is no './nowhere'" in capsys.readouterr().err


MISFIT = ["serve", "--port", "0", "--model", DEEPSEEK, "--tool-parser", "hermes", "--reasoning-parser", "qwen3"]

STOPPED = [
    (MISFIT, ["would misread", "came back", "tool_parser='deepseek_v31'", "--allow-misfit"]),
    ([*MISFIT, "--tool-parser", "auto", "--allow-misfit"], ["would misread"]),
    (["serve", "--tool-parser", "auto"], ["'auto' needs --model"]),
    (["serve", "--tool-parser", "auto", "--model", "gpt-4o"], ["no rule knows it by its name"]),
]


@pytest.mark.parametrize(("arguments", "words"), STOPPED)
def test_what_stops_the_start(arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert [word for word in words if word not in said] == []


STARTED = [
    ([*MISFIT, "--allow-misfit"], "reading qwen3+hermes", True),
    ([*MISFIT, "--tool-parser", "auto", "--reasoning-parser", "auto"], "reading deepseek_v31", False),
    (["serve", "--port", "0", "--model", DEEPSEEK], "no parser chosen", False),
    (["serve", "--port", "0", "--model", "gpt-4o", "--tool-parser", "hermes"], "as gpt-4o has no weights here", False),
]


@pytest.mark.parametrize(("arguments", "reading", "warned"), STARTED)
def test_what_starts(arguments: list[str], reading: str, warned: bool) -> None:
    command = [sys.executable, "-m", "streamsieve.cli", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if " on http" in line:
                break
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert reading in lines[-1]
    assert ("warning" in lines[0]) == warned
