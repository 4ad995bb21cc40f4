"""The room brings in what it stands on and nothing else."""

from __future__ import annotations

import subprocess
import sys

FOREIGN = ["starlette", "fastapi", "anyio", "httpx", "httpx2", "openai", "pydantic", "uvicorn", "torch"]
FOREIGN += [f"streamsieve.{room}" for room in ("sdk_patch", "backends", "cli")]


def test_a_fresh_interpreter_imports_no_framework_with_it():
    code = f"import sys, streamsieve.middleware; print([name for name in {FOREIGN!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
