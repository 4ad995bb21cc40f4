"""The wheel, built from the source distribution: what it holds, and that it works outside the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("parsers", "wire", "middleware", "sdk_patch", "backends", "cli")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a release is: repository to source distribution to wheel."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT], check=True, capture_output=True
    )
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed and nothing else."""
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True)
    return target


def package_files() -> Iterator[str]:
    """What the package is made of, read off the repository."""
    yield from ("streamsieve/__init__.py", "streamsieve/py.typed")
    for room in ROOMS:
        for file in (ROOT / room).rglob("*"):
            if file.is_file() and file.suffix != ".pyc" and file.name not in ("_umbrella.py", "py.typed"):
                yield f"streamsieve/{file.relative_to(ROOT).as_posix()}"


def test_the_wheel_holds_the_rooms_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = {name.partition(".dist-info/")[2] for name in archive.namelist() if ".dist-info/" in name}
        umbrella = archive.read("streamsieve/__init__.py")
    assert files == set(package_files())
    assert about == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert umbrella == (ROOT / "parsers/_umbrella.py").read_bytes()


def test_metadata_and_package_agree_on_the_version(site: Path) -> None:
    code = "import streamsieve, importlib.metadata as m; print(streamsieve.__version__ == m.version('streamsieve'))"
    assert outside(site, "-c", code).stdout == "True\n"


def test_the_command_works_from_the_wheel(site: Path) -> None:
    listing = json.loads(outside(site, site / "bin" / "streamsieve", "list", "--json").stdout)
    assert {"hermes", "openai"} <= {row["name"] for row in listing["tool"]}


def test_tests_pass_against_the_wheel(site: Path, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    shutil.copytree(ROOT / "tests" / "parsers", tests / "parsers", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "cases", tests / "cases")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    where = "import streamsieve.parsers.chain as c; print(c.__file__)"
    assert Path(outside(site, "-c", where).stdout.strip()).is_relative_to(site)
    chosen = ["-q", "-p", "no:cacheprovider", "-k", "chain or registry or whole"]
    assert " passed" in outside(site, "-m", "pytest", *chosen, cwd=tmp_path).stdout


def outside(site: Path, *arguments: str | Path, cwd: str | Path = "/") -> subprocess.CompletedProcess[str]:
    """Python outside the repository, with the installed wheel before the editable install."""
    environ = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, *map(str, arguments)], env=environ, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
