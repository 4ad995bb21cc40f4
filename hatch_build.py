"""Build hook: the root folders are one package, `streamsieve`.

A wheel gets them by `sources` in pyproject.toml, and from here the two files that stand at the top of
the package. An editable install sees `build/dev/streamsieve`, made here of links, so that a new file is
there without installing again. After `rm -rf build`, install again.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOMS = ("parsers", "wire", "middleware", "sdk_patch", "backends", "cli")
TOP = {"__init__.py": "parsers/_umbrella.py", "py.typed": "parsers/py.typed"}


class OnePackage(BuildHookInterface[Any]):
    """Hatchling finds this class by its base; `initialize` runs before a target is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable":
            link_package(root, root / "build" / "dev" / "streamsieve")
        else:
            for name, source in TOP.items():
                build_data["force_include"][str(root / source)] = f"streamsieve/{name}"


def link_package(root: Path, package: Path) -> None:
    """Make `package` anew: a real folder that holds links to the rooms and the top files."""
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for name, source in {**TOP, **{room: room for room in ROOMS}}.items():
        _link(root / source, package / name)


def _link(source: Path, link: Path) -> None:
    if sys.platform != "win32":
        link.symlink_to(os.path.relpath(source, link.parent))
    elif source.is_dir():
        import _winapi

        _winapi.CreateJunction(str(source), str(link))  # unlike a symbolic link it needs no privilege
    else:
        os.link(source, link)
