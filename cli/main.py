"""The command `streamsieve`: finds the command asked for, and turns what went wrong into an exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from streamsieve import __version__
from streamsieve.cli import check, demo, demo_local, detect, fetch_demo_model, listing, parse, serve
from streamsieve.parsers.errors import ConfigurationError

COMMANDS = (serve, demo, listing, detect, check, parse, fetch_demo_model, demo_local)
EXTRAS = {
    "uvicorn": "serve",
    "starlette": "serve",
    "anyio": "serve",
    "httpx2": "serve",
    "jinja2": "serve",
    "openai": "openai",
    "torch": "local",
    "transformers": "local",
    "tokenizers": "local",
    "xgrammar": "local",
    "prometheus_client": "local",
    "gguf": "local",
    "accelerate": "local",
}
"""Which extra brings a package that a command imports."""

WRONG_USE = 2
BROKEN_PIPE = 128 + 13
"""What a shell reports for a program that a closed pipe has ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 where something failed, 2 for a wrong command line."""
    for stream in (sys.stdout, sys.stderr):
        _speak_utf8(stream)
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except ConfigurationError as error:
        print(f"streamsieve {options.command}: error: {error}", file=sys.stderr)
        return WRONG_USE
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        command = f"pip install 'streamsieve[{EXTRAS[error.name]}]'"
        print(f"streamsieve {options.command}: {error.name} is not installed: {command}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Python flushes stdout once more on its way out, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamsieve", description="Sorts a model's raw stream into reasoning, content and tool calls."
    )
    parser.add_argument("--version", action="version", version=f"streamsieve {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser


def _speak_utf8(stream: TextIO) -> None:
    """UTF-8 whatever the locale is. Half a surrogate pair, which JSON can spell and UTF-8 cannot, stays escaped."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="backslashreplace")
