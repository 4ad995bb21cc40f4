"""The options by which `serve` and `parse` choose how replies are read; vLLM's spellings count too."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What `add_subparsers` returns."""


def add_parser_options(command: argparse.ArgumentParser) -> None:
    """Add `--reasoning-parser`, `--tool-parser`, `--response-template`, `--prompt-tail` and `--deliver`."""
    command.add_argument(
        "--reasoning-parser", metavar="NAME", help="who reads the reasoning (streamsieve list has the names)"
    )
    command.add_argument("--tool-parser", "--tool-call-parser", metavar="NAME", help="who reads the tool calls")
    command.add_argument(
        "--response-template",
        metavar="FILE",
        help="JSON: what the parser hf reads by; a tokenizer_config.json that has it, or its folder, will do",
    )
    command.add_argument(
        "--prompt-tail", metavar="TEXT", help="what the rendered prompt ends in, where the format's own rule is wrong"
    )
    command.add_argument(
        "--unknown-tools",
        choices=("call", "text"),
        default="call",
        help="what a call of a function that is not in the request's tools is (default: call)",
    )
    command.add_argument(
        "--deliver",
        choices=("stream", "complete"),
        default="stream",
        help="complete: hold each tool call until it is complete (default: stream)",
    )


def count(text: str) -> int:
    """The type of an option that takes a whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number above 0")
    return int(text)
