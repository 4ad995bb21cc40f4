"""Recorded replies: per model family, what such a model writes before anything is parsed.

The recordings are the TOML files in `recordings/`, written by hand from the format cards.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from streamsieve.parsers.conformance.cases import Case, CaseError, load
from streamsieve.parsers.errors import ConfigurationError

_SCENES = ("answer", "call")
"""Those that a request without a scene of its own may ask for."""


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


def captured(path: str | Path) -> Mapping[str, Recording]:
    """Recordings of the cases in a file, which `capture` and the conformance kit write: by id.

    Raises ConfigurationError where the file cannot be read or a line is no case.
    """
    try:
        found = {case.id: _of_case(case) for case in load(Path(path))}
    except OSError as error:
        raise ConfigurationError(f"replay: {path}: {error.strerror}") from error
    except CaseError as error:
        raise ConfigurationError(f"replay: {error}") from error
    if not found:
        raise ConfigurationError(f"replay: there is no case in {path}")
    return found


def _of_case(case: Case) -> Recording:
    return Recording(
        family=case.id,
        title=case.id,
        tool_parser=case.tool_parser or "none",
        reasoning_parser=case.reasoning_parser,
        scenes=dict.fromkeys(_SCENES, case.raw),
    )
