"""`streamsieve serve` with parser files written for vLLM."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from streamsieve.cli.main import main

PLUGIN = """
from vllm.entrypoints.openai.engine.protocol import DeltaMessage
from vllm.reasoning import ReasoningParser, ReasoningParserManager
from vllm.tool_parsers import ToolParser, ToolParserManager

@ReasoningParserManager.register_module("first_line")
class FirstLine(ReasoningParser):
    def extract_reasoning(self, model_output, request):
        reasoning, _, content = model_output.partition("\\n")
        return reasoning, content

    def extract_reasoning_streaming(self, previous_text, current_text, delta_text, *ids):
        reasoning, _, content = delta_text.partition("\\n") if "\\n" not in previous_text else ("", "", delta_text)
        return DeltaMessage(reasoning=reasoning or None, content=content or None)
"""


@pytest.mark.parametrize("options", [("--reasoning-parser-plugin",), ("--tool-parser-plugin",),
                                     ("--reasoning-parser-plugin", "--tool-parser-plugin")])  # fmt: skip
def test_its_names_can_be_chosen(options: tuple[str, ...], tmp_path: Path) -> None:
    """With either option, as in vLLM, and with both for one file."""
    file = tmp_path / "first_line.py"
    file.write_text(PLUGIN)
    plugins = [part for option in options for part in (option, str(file))]
    command = [sys.executable, "-m", "streamsieve.cli", "serve", "--port", "0", *plugins]
    command += ["--reasoning-parser", "first_line", "--tool-parser", "hermes"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        url = re.search(r" on (http://\S+), reading first_line\+hermes", line)
        assert url is not None, line
        raw = 'Thinking.\nHi.<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
        body = {"model": "hermes", "messages": [{"role": "user"}], "replay": {"raw": raw}}
        body["tools"] = [{"type": "function", "function": {"name": "ping"}}]
        message = httpx2.post(url[1] + "/chat/completions", json=body).json()["choices"][0]["message"]
        streamed = httpx2.post(url[1] + "/chat/completions", json=body | {"stream": True}).text
        server.terminate()
    assert (message["reasoning"], message["content"]) == ("Thinking.", "Hi.")
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["ping"]
    assert '"reasoning":"Thin' in streamed
    assert "tool_call>" not in streamed


def test_what_cannot_be_loaded_stops_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--tool-parser-plugin", "not_there.py"]) == 2
    assert "tool_parser_plugin: 'not_there.py' is neither a file nor a module" in capsys.readouterr().err
