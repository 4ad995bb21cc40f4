"""The options of `serve` that say how the upstream is asked."""

from __future__ import annotations

import argparse

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.dialects import DIALECTS
from streamsieve.wire.options import Options


def add_upstream_options(command: argparse.ArgumentParser) -> None:
    """Add `--dialect`, `--tool-strict-level` and `--enforcement`."""
    command.add_argument(
        "--dialect",
        choices=tuple(DIALECTS),
        help="what the upstream is: it is asked in its own words for raw text and for constraints (docs/upstreams.md)",
    )
    command.add_argument(
        "--tool-strict-level",
        choices=("auto", "function", "parameter"),
        default="auto",
        help="what of calls is constrained where the request does not say, as vLLM has it (default: auto)",
    )
    command.add_argument(
        "--enforcement",
        choices=("always", "best_effort"),
        default="always",
        help="whether a tool_choice that cannot be enforced is refused or passed over (default: always)",
    )


def upstream_options(options: argparse.Namespace) -> Options:
    """Those that are fields of `Settings`."""
    if options.dialect is not None and options.upstream is None:
        raise ConfigurationError("--dialect: says what --upstream is, which is missing")
    return {
        "upstream": options.dialect,
        "tool_strict_level": options.tool_strict_level,
        "enforcement": options.enforcement,
    }
