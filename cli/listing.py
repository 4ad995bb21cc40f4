"""`streamsieve list`: every name that may be given to a parser or stage option."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from streamsieve.cli import formats_page
from streamsieve.cli.parser_options import Commands
from streamsieve.parsers import registry
from streamsieve.parsers.registry import NameEntry, StageEntry

TITLES = {"tool": "--tool-parser", "reasoning": "--reasoning-parser", "stages": "--stage"}


def add(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("list", help="list parsers and stages, plugins too")
    command.set_defaults(run=run)
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object: tool, reasoning, stages")
    form.add_argument(
        "--markdown",
        action="store_true",
        help="a page about the built-in formats: markers, examples, what streams, what a cut leaves",
    )


def run(options: argparse.Namespace) -> int:
    """Print the names; a broken plugin is shown as such and is no failure of the command."""
    if options.markdown:
        print(formats_page.page(formats_page.built_in()), end="")
        return 0
    listing = registry.listing()
    if options.json:
        print(json.dumps(listing, ensure_ascii=False))
        return 0
    _print_group("tool", listing["tool"])
    _print_group("reasoning", listing["reasoning"])
    _print_group("stages", listing["stages"])
    return 0


def _print_group(group: str, entries: Sequence[NameEntry] | Sequence[StageEntry]) -> None:
    print(TITLES[group])
    width = max((len(entry["name"]) for entry in entries), default=0)
    for entry in entries:
        what = f"({entry['distribution']})"
        if "error" in entry:
            what = f"broken: {entry['error']}"
        elif format := entry.get("format"):
            what = f"{format}  {what}"
        print(f"  {entry['name']:<{width}}  {what}")
    if not entries:
        print("  (none installed)")
