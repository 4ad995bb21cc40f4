"""A model's chat template, rendered at arm's length (see `streamsieve.backends.template_process`)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import starmap

from streamsieve.parsers.errors import ConfigurationError

SECONDS = 10.0
"""How long all renderings of one call may take."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """One rendering: its text, or None and the error with which the template refused."""

    text: str | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Renderings:
    """Those of one call. `variables`: the names that the template reads and does not set."""

    variables: frozenset[str]
    results: Sequence[Rendered]


def render(template: str, jobs: Sequence[Mapping[str, object]]) -> Renderings:
    """Render `template` once with the variables of each of `jobs`, in a process that ends with this call.

    Raises ConfigurationError where the template is none, or takes more time or memory than it may, and
    ModuleNotFoundError where jinja2 is not installed.
    """
    if find_spec("jinja2") is None:
        raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")
    order = json.dumps({"template": template, "jobs": jobs})
    command = [sys.executable, "-P", "-m", "streamsieve.backends.template_process"]
    try:
        done = subprocess.run(command, input=order, capture_output=True, encoding="utf-8", timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"model: its chat template takes more than {SECONDS:g} seconds") from error
    if done.returncode != 0:
        said = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
        raise ConfigurationError(f"model: its chat template cannot be rendered within the limits: {said}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise ConfigurationError(f"model: its chat template is none that Jinja reads: {answer['error']}")
    texts = [(result.get("text"), result.get("error", "")) for result in answer["results"]]
    return Renderings(frozenset(answer["variables"]), list(starmap(Rendered, texts)))
