"""`streamsieve list`."""

from __future__ import annotations

import json

import pytest

from streamsieve.cli.main import main
from streamsieve.parsers import registry


def test_json_is_the_registrys_listing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    listing = json.loads(capsys.readouterr().out)
    assert listing == registry.listing()
    (hermes,) = (entry for entry in listing["tool"] if entry["name"] == "hermes")
    assert hermes == {
        "name": "hermes",
        "aliases": ["qwen3_json", "qwen", "qwen25"],
        "format": "hermes",
        "distribution": "streamsieve",
    }


def test_a_table_shows_every_name_and_a_broken_plugin_as_such(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listing: registry.Listing = {
        "tool": [
            {"name": "good", "aliases": [], "format": "good", "distribution": "one"},
            {"name": "bad", "aliases": [], "format": None, "distribution": "two", "error": "no module"},
        ],
        "reasoning": [],
        "stages": [{"name": "censor", "distribution": "one"}],
    }
    monkeypatch.setattr(registry, "listing", lambda: listing)
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "--tool-parser",
        "  good  good  (one)",
        "  bad   broken: no module",
        "--reasoning-parser",
        "  (none installed)",
        "--stage",
        "  censor  (one)",
    ]
