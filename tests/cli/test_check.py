"""`streamsieve check`: the table, the exit status, and what it says of a failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamsieve.cli.main import main

GOOD: dict[str, Any] = {
    "id": "good",
    "tool_parser": None,
    "reasoning_parser": "qwen3",
    "raw": "a</think>b",
    "engine_finish": "stop",
    "expect": {"reasoning": "a", "content": "b", "tool_calls": [], "finish_reason": "stop"},
}
WRONG = {**GOOD, "id": "wrong", "expect": {**GOOD["expect"], "content": "c"}}
UNKNOWN = {**GOOD, "id": "unknown", "reasoning_parser": "qwen33"}
WAYS = len(GOOD["raw"]) + 1
"""Whole, character by character, and every cut in two."""


def file(folder: Path, name: str, *cases: object) -> str:
    path = folder / name
    path.write_text("".join((case if isinstance(case, str) else json.dumps(case)) + "\n" for case in cases))
    return str(path)


def test_cases_that_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = file(tmp_path, "one.jsonl", GOOD, GOOD), file(tmp_path, "two.jsonl", GOOD)
    assert main(["check", one, two]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1:] == [
        [one, "2", str(2 * WAYS), "0", "0"],
        [two, "1", str(WAYS), "0", "0"],
        ["all", "3", str(3 * WAYS), "0", "0"],
    ]


def test_a_case_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path, "cases.jsonl", GOOD, WRONG, GOOD)
    assert main(["check", path]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == [path, "3", str(3 * WAYS), "0", "1"]
    assert f"{path}: wrong: whole (and {WAYS - 1} more ways)" in out
    assert "content\n    expected 'c'\n    got      'b'" in out


def test_an_unknown_parser_fails_or_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path, "cases.jsonl", GOOD, UNKNOWN)
    assert main(["check", path]) == 1
    assert "'qwen33'" in capsys.readouterr().out
    assert main(["check", "--known", path]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [path, "1", str(WAYS), "1", "0"]


@pytest.mark.parametrize("line", ["nope", "[]", '{"id": "x"}'])
def test_a_file_that_is_no_case_file_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    good, bad = file(tmp_path, "good.jsonl", GOOD), file(tmp_path, "bad.jsonl", GOOD, line)
    assert main(["check", good, bad]) == 2
    captured = capsys.readouterr()
    assert f"{bad}:2" in captured.err
    assert captured.out == ""


def test_a_file_that_cannot_be_read_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "nothing.jsonl", tmp_path):
        assert main(["check", str(path)]) == 2
        assert str(path) in capsys.readouterr().err
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\n")
    assert main(["check", str(binary)]) == 2
