"""The flags that say how the upstream is asked."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from streamsieve.cli.main import main
from streamsieve.cli.upstream_options import add_upstream_options, upstream_options
from streamsieve.wire.settings import Settings

URL = ("--upstream", "http://127.0.0.1:9")
FLAGS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    ((), {"upstream": None, "tool_strict_level": "auto", "enforcement": "always"}),
    ((*URL, "--dialect", "llama.cpp"), {"upstream": "llama.cpp"}),
    ((*URL, "--tool-strict-level", "parameter"), {"tool_strict_level": "parameter"}),
    ((*URL, "--enforcement", "best_effort"), {"enforcement": "best_effort"}),
]


@pytest.mark.parametrize(("flags", "expected"), FLAGS)
def test_flags(flags: tuple[str, ...], expected: dict[str, Any]) -> None:
    command = argparse.ArgumentParser()
    command.add_argument("--upstream")
    add_upstream_options(command)
    settings = Settings(**upstream_options(command.parse_args(flags)))
    assert {name: getattr(settings, name) for name in expected} == expected


def test_a_dialect_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--dialect", "vllm"]) != 0
    assert "--upstream is, which is missing" in capsys.readouterr().err
