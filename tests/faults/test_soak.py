"""A short run of the soak; the long one is `python -m benchmarks.soak`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_stream_loses_repeats_or_mixes_anything() -> None:
    options = ["--seconds", "4", "--streams", "40", "--delay", "0.03", "--json"]
    command = [sys.executable, "-m", "benchmarks.soak", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    figures = json.loads(done.stdout)
    assert (figures["first_faults"], done.returncode) == ([], 0)
    assert all(figures["streams"][kind] > 0 for kind in ("whole", "client leaves", "upstream dies"))
