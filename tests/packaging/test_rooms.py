"""Who imports whom: each room is started in a fresh interpreter and says what came with it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = {"parsers", "wire", "middleware", "sdk_patch", "backends", "cli"}

# What a room may bring along.
MAY_IMPORT: dict[str, set[str]] = {
    "parsers": set(),
    "wire": {"parsers"},
    "middleware": {"parsers", "wire"},
    "sdk_patch": {"parsers", "wire"},
    "backends": {"parsers", "wire", "middleware"},
    "cli": ROOMS,
}
FRAMEWORKS = {"starlette", "fastapi", "uvicorn", "httpx", "httpx2", "openai", "pydantic", "anyio", "trio", "orjson"}
HEAVY = {"torch", "transformers", "xgrammar"}
MAY_NEED: dict[str, set[str]] = {
    "parsers": set(),
    "wire": {"orjson"},
    "middleware": {"orjson"},
    "sdk_patch": {"orjson"},
    "backends": FRAMEWORKS,
    "cli": FRAMEWORKS,
}

PROBE = """
import importlib, json, pkgutil, sys
import streamsieve
names = [sys.argv[1]]
if sys.argv[2] == "whole room":
    room = importlib.import_module(names[0])
    found = pkgutil.walk_packages(room.__path__, room.__name__ + ".")
    others = ("__main__", "_umbrella", "local", "ray_serve")  # the last two may bring torch, and Ray
    names += [module.name for module in found if not set(others) & set(module.name.split("."))]
for name in names:
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True, cwd="/"
    )
    loaded: list[str] = json.loads(done.stdout)
    return set(loaded)


def rooms_of(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("streamsieve.")}


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_brings_only_what_it_may(room: str) -> None:
    loaded = modules_after(f"streamsieve.{room}", "whole room")
    assert rooms_of(loaded) <= MAY_IMPORT[room] | {room}
    assert not (FRAMEWORKS - MAY_NEED[room]) & loaded
    assert not HEAVY & loaded


def test_parsers_need_the_standard_library_only() -> None:
    loaded = {name.partition(".")[0] for name in modules_after("streamsieve.parsers", "whole room")}
    bare = {name.partition(".")[0] for name in modules_after("sys", "alone")}  # with what .pth files bring
    assert loaded - bare <= sys.stdlib_module_names


def test_the_package_imports_no_room_by_itself() -> None:
    assert rooms_of(modules_after("streamsieve", "alone")) == set()


@pytest.mark.parametrize(
    ("name", "home"), [("ConfigurationError", "parsers"), ("SieveMiddleware", "middleware"), ("wrap", "sdk_patch")]
)
def test_a_first_import_name_brings_its_own_room_only(name: str, home: str) -> None:
    code = f"from streamsieve import {name}; import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert rooms_of(set(json.loads(done.stdout))) <= MAY_IMPORT[home] | {home}


def test_the_package_has_no_other_name() -> None:
    import streamsieve

    assert {"ConfigurationError", "SieveMiddleware", "wrap"} <= set(dir(streamsieve))
    with pytest.raises(AttributeError, match="module 'streamsieve' has no attribute 'unwrap'"):
        streamsieve.unwrap  # noqa: B018


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_no_room_can_be_imported_from_the_top_by_accident(room: str) -> None:
    assert find_spec(room) is None, f"{room} is on sys.path beside streamsieve.{room}: every class would exist twice"


def test_no_module_was_loaded_under_two_names() -> None:
    names: dict[Path, str] = {}
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/").resolve()
        if file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in ROOMS:
            assert names.setdefault(file, name) == name


def test_the_repository_root_is_no_package() -> None:
    assert not (ROOT / "__init__.py").exists()
