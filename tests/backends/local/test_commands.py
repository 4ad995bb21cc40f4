"""`streamsieve serve --model`, `fetch-demo-model` and `demo-local`, and how loading is shown."""

from __future__ import annotations

import argparse
import io
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import httpx2
import pytest

from streamsieve.backends.local.model import demo_model as demo
from streamsieve.cli import demo_local, local_model
from streamsieve.cli.local_model import LoadingShown, runs_here
from streamsieve.cli.main import main


def serve(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "streamsieve.cli", "serve", "--port", "0", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_a_folder_with_a_model_is_served(tiny_folder: Path) -> None:
    with serve("--model", str(tiny_folder), "--slots", "2", "--max-model-len", "128") as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        found = re.search(r"^streamsieve: \S+/tiny on (http://\S+)/v1, no parser chosen", first)
        assert found, first
        end = time.monotonic() + 60
        while (health := httpx2.get(found[1] + "/health")).status_code != 200:
            assert health.json()["status"] == "loading"
            assert time.monotonic() < end
            time.sleep(0.1)
        [model] = httpx2.get(found[1] + "/v1/models").json()["data"]
        assert (model["id"], model["max_model_len"]) == ("tiny", 128)
        ask = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
        answer = httpx2.post(found[1] + "/v1/chat/completions", json=ask, timeout=60)
        assert answer.json()["usage"]["completion_tokens"] <= 4
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert "  ready: 100 %\n" in rest
    assert "Traceback" not in rest
    assert process.returncode == 0


def test_a_model_that_cannot_be_loaded_ends_the_server(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in tiny_folder.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    assert main(["serve", "--port", "0", "--model", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert re.search(r"^streamsieve serve: error: model: .* cannot be loaded", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("files", "model", "upstream", "runs"),
    [
        (["config.json"], "", None, True),
        (["a.gguf"], "", None, True),
        (["a.gguf"], "a.gguf", None, True),
        ([], "missing.gguf", None, True),  # said by who loads it
        (["chat_template.jinja", "tokenizer_config.json"], "", None, False),
        (["config.json"], "", "http://127.0.0.1:1/v1", False),
        ([], None, None, False),
    ],
)
def test_which_models_run_here(
    files: list[str], model: str | None, upstream: str | None, runs: bool, tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / name).touch()
    path = None if model is None else str(tmp_path / model)
    assert runs_here(argparse.Namespace(model=path, upstream=upstream)) is runs


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        (["--slots", "2", "--upstream", "http://127.0.0.1:1/v1"], "--slots"),
        (["--max-model-len", "128"], "--max-model-len"),
        (["--enable-in-reasoning"], "--enable-in-reasoning"),
        (["--dtype", "float16", "--model", "a-model-by-name", "--allow-misfit"], "--dtype"),
    ],
)
def test_options_that_mean_nothing_are_refused(given: list[str], flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "0", *given]) == 2
    assert f"error: {flag}: only for a model that runs here" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["fetch-demo-model"], ["demo-local"], ["serve", "--model", "{folder}"]])
def test_what_is_missing_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}")
    monkeypatch.setattr(local_model, "find_spec", lambda name: None if name == "xgrammar" else find_spec(name))
    assert main([part.format(folder=tmp_path) for part in command]) == 1
    assert capsys.readouterr().err.endswith("xgrammar is not installed: pip install 'streamsieve[local]'\n")


STAGES = [("reading", 0.0), ("weights", 0.0), ("weights", 4.0), ("weights", 55.0), ("weights", 100.0), ("ready", 100.0)]


def shown(out: io.StringIO) -> str:
    progress = LoadingShown(out)
    for stage, percent in STAGES:
        progress.report(stage, percent)
    return out.getvalue()


def test_loading_in_a_log() -> None:
    assert shown(io.StringIO()) == (
        "  reading: 0 %\n  weights: 0 %\n  weights: 55 %\n  weights: 100 %\n  ready: 100 %\n"
    )


def test_loading_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    lines = shown(Terminal()).split("\n")
    assert [line.rpartition("\r")[2].split()[1:] for line in lines[:3]] == [
        ["0", "%", "reading"], ["100", "%", "weights"], ["100", "%", "ready"],
    ]  # fmt: skip
    assert lines[3:] == [""]
    assert "█" * 30 in lines[1]


def test_the_command_that_serves_the_demo_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "model.safetensors").touch()
    assert main(["fetch-demo-model", "--into", str(folder)]) == 0
    assert capsys.readouterr().out == f"streamsieve serve --model '{folder}' --tool-parser hermes\n"


def test_the_demo(demo_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(demo, "fetch", lambda **options: demo_model)
    monkeypatch.setattr(demo_local, "MAX_TOKENS", 48)
    assert main(["demo-local"]) == 0
    out = capsys.readouterr().out
    assert out.count("follows its schema") == 2
    assert "The capital of France is Paris." in out
    assert re.search(r"^2 of 2 schemas kept; all four took [\d.]+ s\.$", out, re.MULTILINE)


def test_a_schema_that_is_not_kept_is_told(demo_model: Path) -> None:
    bound, _ = demo_local._requests()
    for asked in bound:
        asked.finish_reason = "length"
        asked.text = '{"city": "Par'
        assert asked.verdict.startswith("does NOT follow its schema")
