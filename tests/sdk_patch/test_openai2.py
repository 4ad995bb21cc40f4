"""openai 2 speaks through httpx: the tests of this room once more, in an environment that has no openai 3."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import streamsieve

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NEEDED = ["openai>=2,<3", "h2", "hypercorn", "orjson", "pytest", "pytest-asyncio", "starlette", "trio", "uvicorn"]


@pytest.fixture(scope="session")
def python(environment) -> Path:
    """The interpreter of an environment with openai 2."""
    if int(sys.modules["openai"].__version__.partition(".")[0]) < 3:
        pytest.skip("this is the environment with openai 2")
    found: Path = environment("openai2-tests", NEEDED)
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
