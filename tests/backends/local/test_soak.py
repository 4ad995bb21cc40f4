"""A short run of the soak; the long one is `python -m benchmarks.local_soak`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from transformers import PreTrainedTokenizerFast

ROOT = Path(__file__).parents[3]


def test_every_request_is_answered_and_nothing_is_left(byte_tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    byte_tokenizer.save_pretrained(tmp_path)
    options = ["--tokenizer", str(tmp_path), "--minutes", "0.05", "--clients", "8", "--slots", "3", "--queue", "8"]
    command = [sys.executable, "-m", "benchmarks.local_soak", *options, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr[-2000:]
    figures = json.loads(done.stdout)
    assert (figures["first_faults"], done.returncode) == ([], 0)
    assert figures["answers"]["200"] > 0
