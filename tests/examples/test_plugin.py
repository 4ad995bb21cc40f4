"""The example plugin, installed into a virtual environment of its own, as its user would use it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import httpx2
import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugin"
HOME = ROOT / ".venvs" / "plugin"
PYTHON = HOME / "bin" / "python"
RAW = '<plan>Ask.</plan>Mail a.b@example.org now.<do>{"name": "ping", "arguments": {}}</do>'


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """The plugin in its environment; of what it needs it sees what this environment has, so nothing is fetched."""
    venv.create(HOME, clear=True, symlinks=True)
    ours = sysconfig.get_path("purelib")
    theirs = sysconfig.get_path("purelib", vars={"base": str(HOME), "platbase": str(HOME)})
    (Path(theirs) / "parent.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    pip = [sys.executable, "-m", "pip", "--python", str(PYTHON), "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", str(PLUGIN)], check=True)


def command(*arguments: str, stdin: str = "", status: int = 0, **environment: str) -> str:
    done = subprocess.run(
        [str(PYTHON), "-m", "streamsieve.cli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_the_names_are_listed_with_their_distribution() -> None:
    listing: dict[str, list[dict[str, Any]]] = json.loads(command("list", "--json"))
    entry = {"name": "acme", "aliases": [], "format": "acme", "distribution": "streamsieve-acme"}
    assert entry in listing["tool"]
    assert entry in listing["reasoning"]
    assert {"name": "acme_redact", "distribution": "streamsieve-acme"} in listing["stages"]


def test_the_format_parses() -> None:
    result = json.loads(command("parse", "--tool-parser", "acme", "--reasoning-parser", "acme", stdin=RAW))
    assert (result["reasoning"], result["content"]) == ("Ask.", "Mail a.b@example.org now.")
    assert [call["name"] for call in result["tool_calls"]] == ["ping"]


def test_half_of_the_format_goes_with_half_of_a_built_in_one() -> None:
    result = json.loads(
        command("parse", "--tool-parser", "acme", "--reasoning-parser", "qwen3", stdin="a</think>" + RAW)
    )
    assert (result["reasoning"], [call["name"] for call in result["tool_calls"]]) == ("a", ["ping"])


def test_its_cases_hold() -> None:
    assert command("check", str(PLUGIN / "cases.jsonl")).splitlines()[1].split()[-1] == "0"


def test_its_own_tests_pass_there(tmp_path: Path) -> None:
    """The conformance kit, with pytest as its entry point brings it and a copy of the plugin's tests."""
    for part in ("tests", "cases.jsonl", "pyproject.toml"):
        copy = shutil.copytree if (PLUGIN / part).is_dir() else shutil.copy
        copy(PLUGIN / part, tmp_path / part)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "--streamsieve-examples", "30"]
    done = subprocess.run([str(PYTHON), "-m", "pytest", *options], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^2\d passed, 4 skipped", done.stdout, re.MULTILINE), done.stdout


def test_the_stage_runs_by_its_name_at_every_chunk_size() -> None:
    program = f"""
import json
from starlette.testclient import TestClient
from streamsieve import SieveMiddleware
from streamsieve.backends.replay import replay

app = SieveMiddleware(replay(), reasoning_parser="acme", stages=["acme_redact"])
with TestClient(app) as client:
    for chunk in (1, 5, 1000):
        body = {{"model": "hermes", "messages": [{{"role": "user"}}], "stream": True}}
        answer = client.post("/v1/chat/completions", json={{**body, "replay": {{"raw": {RAW!r}, "chunk": chunk}}}})
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {{")]
        print("".join(event["choices"][0]["delta"].get("content") or "" for event in events))
"""
    done = subprocess.run([str(PYTHON), "-c", program], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines == ['Mail [mail address] now.<do>{"name": "ping", "arguments": {}}</do>'] * 3, done.stderr


def test_the_server_takes_the_stage_by_its_name() -> None:
    options = ["serve", "--port", "0", "--reasoning-parser", "acme", "--stage", "acme_redact"]
    command = [str(PYTHON), "-m", "streamsieve.cli", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        url = re.search(r" on (http://\S+), ", server.stderr.readline())
        assert url is not None
        body = {"model": "hermes", "messages": [{"role": "user"}], "replay": {"raw": RAW}}
        message = httpx2.post(url[1] + "/chat/completions", json=body).json()["choices"][0]["message"]
        server.terminate()
    assert message["content"].startswith("Mail [mail address] now.")


def test_plugins_can_be_switched_off() -> None:
    options = ("parse", "--tool-parser", "acme")
    assert "unknown name 'acme'" in command(*options, status=2, STREAMSIEVE_PLUGINS="")
    assert "unknown name 'acme'" in command(*options, status=2, STREAMSIEVE_PLUGINS="another")
    assert command(*options, STREAMSIEVE_PLUGINS="streamsieve_acme")
