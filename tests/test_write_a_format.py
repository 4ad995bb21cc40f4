"""docs/write-a-format.md, followed as it is printed, in a virtual environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "write-a-format.md"
STEP = re.compile(r"(?:^`([\w./-]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEP_FILE = r"^`([\w./-]+)`:$"
SECTIONS = re.findall(r"^## (\d)\. [^\n]+\n(.*?)(?=^## |\Z)", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


class Author:
    """Does what the guide says: saves the files, types the commands, looks whether they print what it shows."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment

    def follow(self, section: str) -> None:
        printed = ""
        for name, language, text in STEP.findall(section):
            if name:
                path = self._folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif language == "sh":
                printed = self._type(text)
            else:
                assert language == "text", text
                assert _spaced(printed) == _spaced(text)

    def _type(self, commands: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", commands], cwd=self._folder, env=self._environment, capture_output=True, encoding="utf-8"
        )
        assert done.returncode == 0, f"{commands}{done.stdout}{done.stderr}"
        return done.stdout


def _spaced(text: str) -> str:
    """Text whose columns may have another width, and whose ids are random."""
    return re.sub(r"\s+", " ", re.sub(r"chatcmpl-tool-\w+", "…", text)).strip()


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory) -> Author:
    """One who has what this environment has, with commands of their own, so that nothing is fetched."""
    folder = tmp_path_factory.mktemp("heron")
    home = folder / ".venv"
    venv.create(home, symlinks=True)
    theirs = sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)})
    (Path(theirs) / "parent.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    for command, module in (("streamsieve", "streamsieve.cli"), ("pytest", "pytest"), ("pip", "pip")):
        script = home / "bin" / command
        script.write_text(f'#!/bin/sh\nexec "{home}/bin/python" -m {module} "$@"\n')
        script.chmod(0o755)
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    ours = {"STREAMSIEVE": "streamsieve", "PATH": f"{home}/bin{os.pathsep}{os.environ['PATH']}"}
    environment = {name: value for name, value in os.environ.items() if name != "STREAMSIEVE_PLUGINS"}
    return Author(folder, {**environment, **offline, **ours, "PYTEST_ADDOPTS": "-p no:asyncio"})


@pytest.mark.parametrize(("number", "section"), SECTIONS, ids=[number for number, _ in SECTIONS])
def test_a_section_does_what_it_says(author: Author, number: str, section: str) -> None:
    author.follow(section)


def test_nothing_of_the_guide_is_left_out() -> None:
    fences = re.findall(r"^```", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert sum(len(STEP.findall(section)) for _, section in SECTIONS) == len(fences) / 2 > 10


def test_the_files_of_ours_that_it_names_are_there() -> None:
    text = GUIDE.read_text("utf-8")
    families = re.findall(r"^\|.*\| ([^|]*) \|$", text, re.MULTILINE)
    names = {f"parsers/formats/{name}" for cell in families for name in re.findall(r"`(\w+\.py)`", cell)}
    names |= set(re.findall(r"`((?:parsers|tests)/[\w/]+\.py)`", text)) - set(re.findall(STEP_FILE, text, re.MULTILINE))
    assert len(names) > 8
    assert [name for name in names if "FAMILY" not in name and not (ROOT / name).exists()] == []
