"""Names that other installed distributions add through entry points; nothing is imported to list them.

Formats: group `streamsieve.formats`, entry `tool.NAME` or `reasoning.NAME`, value `module:FORMAT`, a `Format`.
Stages: group `streamsieve.stages`, entry `NAME`, value `module:function`, an async generator function.
`STREAMSIEVE_PLUGINS=a,b` in the environment allows only these distributions or entries, an empty value none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from streamsieve.parsers.errors import ConfigurationError

FORMATS = "streamsieve.formats"
STAGES = "streamsieve.stages"
ALLOWED = "STREAMSIEVE_PLUGINS"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point. `owner` is the name and version of the distribution that it came with."""

    name: str
    value: str
    distribution: str
    owner: str
    entry: EntryPoint

    def load(self, kind: type[T]) -> T:
        """The object behind the entry point; whatever goes wrong is a `ConfigurationError` that names the owner."""
        try:
            found = self.entry.load()
        except Exception as failure:  # a foreign module may fail in any way, and must break its own name only
            raise self.broken(f"{type(failure).__name__}: {failure}") from failure
        if not isinstance(found, kind):
            raise self.broken(f"{self.value} is a {type(found).__name__}, not a {kind.__name__}")
        return found

    def broken(self, why: str) -> ConfigurationError:
        """The error for using this plugin."""
        return ConfigurationError(f"plugin {self.name!r} of {self.owner} is broken: {why}")


def installed(group: str) -> Iterator[Plugin]:
    """The allowed plugins of a group, in the order of their names."""
    setting = os.environ.get(ALLOWED)
    allowed = None if setting is None else {_canonical(item) for item in setting.split(",")}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        distribution, version = (entry.dist.name, entry.dist.version) if entry.dist else ("an unknown package", "")
        if allowed is None or not allowed.isdisjoint({_canonical(distribution), _canonical(entry.name)}):
            yield Plugin(entry.name, entry.value, distribution, f"{distribution} {version}".rstrip(), entry)


def _canonical(name: str) -> str:
    """Distribution names count as the same however `-`, `_`, `.` and case are written (PyPA, name normalisation)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
