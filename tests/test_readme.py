"""The README's code runs as it is printed and prints what stands below it; only the port is another."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from streamsieve.wire.settings import Settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!http)([^)#]+)\)")
LOCAL = "Over a local model"
SECTIONS = {
    heading: BLOCK.findall(text)
    for heading, text in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Reader:
    """Does what a reader does: saves the files, types the commands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = str(free_port())
        scripts = sysconfig.get_path("scripts")
        self._environment = {**os.environ, "PATH": scripts + os.pathsep + os.environ["PATH"], "PYTHONWARNINGS": "error"}
        self._servers: list[subprocess.Popen[bytes]] = []
        (folder / ".venv").symlink_to(sys.prefix)

    def read(self, blocks: list[tuple[str, str]]) -> None:
        printed = ""
        for language, text in blocks:
            code = re.sub("800[0-3]", self._port, text)
            match language:
                case "python":
                    name = re.match(r"# (\w+\.py)\n", code)
                    assert name, "a block of Python says its file's name"
                    (self._folder / name[1]).write_text(code, encoding="utf-8")
                case "sh":
                    printed = "".join(map(self._type, code.splitlines()))
                case "text":
                    assert re.sub(r"id='[^']+'", "id='…'", printed).rstrip("\n") == text.rstrip("\n")

    def _type(self, line: str) -> str:
        run = ["bash", "-c", "exec " + line.removesuffix("&") if line.endswith("&") else line]
        if line.endswith("&"):
            self._servers.append(subprocess.Popen(run, cwd=self._folder, env=self._environment))
            self._wait()
            return ""
        return subprocess.run(
            run, cwd=self._folder, env=self._environment, check=True, stdout=subprocess.PIPE, encoding="utf-8"
        ).stdout

    def _wait(self) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as caller:
                if caller.connect_ex(("127.0.0.1", int(self._port))) == 0:
                    return
            time.sleep(0.05)
        raise TimeoutError("the README's server does not listen")

    def close(self) -> None:
        for server in self._servers:
            server.terminate()
            server.wait()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.close()


def test_a_local_model_runs_as_printed(reader: Reader, demo_model: Path, tmp_path: Path) -> None:
    (tmp_path / "smollm2").symlink_to(demo_model)  # `fetch-demo-model --into smollm2` finds it there already
    reader.read(SECTIONS[LOCAL])


@pytest.mark.parametrize("heading", [heading for heading in SECTIONS if heading not in ("Start", "More", LOCAL)])
def test_a_section_runs_as_printed(reader: Reader, heading: str) -> None:
    blocks = SECTIONS[heading]
    assert any(language == "sh" for language, _ in blocks)
    reader.read(blocks)


def test_the_first_commands_are_targets_of_the_makefile(tmp_path: Path) -> None:
    (first, activate) = (text for language, text in SECTIONS["Start"] if language == "sh")
    for line in first.splitlines():
        command = line.partition("#")[0].split()
        assert command[0] == "make"
        assert shutil.which("make")
        subprocess.run([*command, "--dry-run"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert activate == "source .venv/bin/activate\n"


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")]), ids=lambda page: page.name
)
def test_the_other_pages_code_and_links(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for language, code in BLOCK.findall(text):
        if language == "python":
            compile(code, page.name, "exec")
        if language == "toml":
            tomllib.loads(code)
    for link in LINK.findall(text):
        assert (page.parent / link).exists(), link


def test_every_option_is_on_its_page() -> None:
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    options = [field.name for field in fields(Settings) if field.init]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (?:`STREAMSIEVE_(\w+)`|\S)", page, re.MULTILINE)
    in_code_only = ["render_prompt"]
    assert rows == [(option, "" if option in in_code_only else option.upper()) for option in options]
    sections = [name for heading in re.findall(r"^## (.+)$", page, re.MULTILINE) for name in heading.split(", ")]
    assert sections == options


@pytest.mark.parametrize("link", LINK.findall(README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
