"""`streamsieve detect`: which parsers read a model's replies, and what its chat template shows of its thinking."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from streamsieve.cli.parser_options import Commands
from streamsieve.parsers.rules import AUTO

if TYPE_CHECKING:
    from streamsieve.backends.detection import Detection

FOUND_BY = {"name": "the model's name", "template": "its chat template", "tokens": "its tokens", "hand": "you"}


def add(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser(
        "detect",
        help="find the parsers for a model by its chat template, and prove them on it",
        description="Exits 1 where nothing fits, 2 where the model cannot be read.",
    )
    command.set_defaults(run=run)
    command.add_argument("model", metavar="PATH", help="a model's folder, a .gguf or .jinja file, or a model's name")
    command.add_argument("--json", action="store_true", help="one JSON object")
    for option, aliases in (("--reasoning-parser", ()), ("--tool-parser", ("--tool-call-parser",))):
        command.add_argument(
            option, *aliases, metavar="NAME", default=AUTO, help="check this one (default: auto; none leaves it out)"
        )


def run(options: argparse.Namespace) -> int:
    """Print what was found; 1 where nothing fits."""
    from streamsieve.backends.detection import NothingFits, detect

    try:
        found = detect(options.model, tool_parser=options.tool_parser, reasoning_parser=options.reasoning_parser)
    except NothingFits as error:
        if options.json:
            print(json.dumps({"model": options.model, "error": str(error)}, ensure_ascii=False))
        else:
            print(f"streamsieve detect: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(_as_json(found), ensure_ascii=False))
    else:
        _print(found)
    return 0


def _as_json(found: Detection) -> dict[str, object]:
    portrait, fit = found.portrait, found.fit
    switch = portrait.switch if portrait else None
    return {
        "model": found.model.source,
        "tool_parser": found.choice.tool,
        "reasoning_parser": found.choice.reasoning,
        "found_by": found.found_by,
        "thinking": {"key": switch.key, "on": switch.on, "off": switch.off, "default": portrait.default}
        if portrait and switch
        else None,
        "prompt_tails": portrait.tails if portrait else None,
        "checked": fit is not None,
        "notes": list(fit.notes) if fit else [],
    }


def _print(found: Detection) -> None:
    print(f"tool parser       {found.choice.tool or 'none'}")
    print(f"reasoning parser  {found.choice.reasoning or 'none'}")
    print(f"chosen by         {FOUND_BY[found.found_by]}")
    portrait, fit = found.portrait, found.fit
    if portrait:
        switch = portrait.switch
        if switch:
            print(f"thinking          {switch.key}: {switch.on!r} on, {switch.off!r} off, default {portrait.default}")
        else:
            print("thinking          no switch")
        for mode, tail in portrait.tails.items():
            print(f"prompt ends in    {tail!r} (thinking {'not set' if mode == 'default' else mode})")
    proof = "what the chat template writes comes back as it went in"
    print(f"check             {proof if fit else 'none: no parser' if portrait else 'none: no template'}")
    for note in fit.notes if fit else ():
        print(f"                  {note}")
