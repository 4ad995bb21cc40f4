"""Recorded replies: per model family, what such a model writes before anything is parsed.

The recordings are the TOML files in `recordings/`, written by hand from the format cards.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Recording:
    """One family's replies.

    The parsers are those that read this family. Each scene is raw text: `answer` (no tools, or a tool has
    answered), `call` (one tool call) and `parallel` (two calls).
    """

    family: str
    title: str
    tool_parser: str
    reasoning_parser: str | None
    scenes: Mapping[str, str]


@cache
def recordings() -> Mapping[str, Recording]:
    """Every recording by its family's name, in the order of the names."""
    found = {}
    for file in (files("streamsieve.backends") / "recordings").iterdir():
        if file.name.endswith(".toml"):
            table = tomllib.loads(file.read_text(encoding="utf-8"))
            family = file.name.removesuffix(".toml")
            found[family] = Recording(
                family=family,
                title=table["title"],
                tool_parser=table["tool_parser"],
                reasoning_parser=table.get("reasoning_parser"),
                scenes=table["scenes"],
            )
    return dict(sorted(found.items()))
