"""openai 2 speaks through httpx: the tests of this room once more, in an environment that has no openai 3."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import streamsieve

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENT = ROOT / ".venvs" / "openai2"
MODULES = ["openai", "h2", "hypercorn", "orjson", "pytest", "pytest_asyncio", "starlette", "trio", "uvicorn"]
NEEDED = ["openai>=2,<3", *(module.replace("_", "-") for module in MODULES[1:])]
USABLE = f"import sys, {', '.join(MODULES)}; sys.exit(not openai.__version__.startswith('2.'))"
UNREACHABLE = ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError", "ProxyError", "Read timed out")
"""How pip says that it did not get through to the registry."""


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of an environment with openai 2, made on first use and kept."""
    if int(sys.modules["openai"].__version__.partition(".")[0]) < 3:
        pytest.skip("this is the environment with openai 2")
    found = ENVIRONMENT / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not found.exists() or subprocess.run([found, "-c", USABLE], capture_output=True, check=False).returncode:
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        install = [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDED]
        installed = subprocess.run(install, capture_output=True, text=True, check=False)
        if installed.returncode and any(sign in installed.stderr for sign in UNREACHABLE):
            pytest.skip(f"the package registry cannot be reached, so there is no openai 2: {installed.stderr[-300:]}")
        assert installed.returncode == 0, installed.stderr
    _share_our_package(found)
    return found


def _share_our_package(python: Path) -> None:
    """A link to the package under test and to nothing else of this environment."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    shown = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True)
    link = Path(shown.stdout.strip()) / "streamsieve"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(streamsieve.__file__).parent, target_is_directory=True)


def test_the_room_under_openai_2(python):
    command = [python, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", HERE, f"--ignore={__file__}"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
    assert ran.returncode == 0, ran.stdout + ran.stderr
