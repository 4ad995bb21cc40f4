"""`streamsieve demo`: what a reader sees, with and without a terminal, and the exit status."""

from __future__ import annotations

import io
import re

import pytest

from streamsieve.backends.recording import recordings
from streamsieve.cli import demo
from streamsieve.cli.columns import BOLD, DIM, Line, Screen, lines_of
from streamsieve.cli.main import main

ESCAPE = re.compile(r"\x1b\[[0-9]*[a-zA-Z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_family_in_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert not ESCAPE.search(out)
    for recording in recordings().values():
        assert recording.title in out
    assert out.count(": the same") == 3 * len(recordings())
    assert out.count('  get_tide {"port": "Brest", "days": 2}') == len(recordings())
    assert "finish_reason: tool_calls" in out
    assert out.endswith("9 families. Every way gave the same trays.\n")


@pytest.mark.parametrize(
    ("scene", "shown"), [("answer", "High water in Brest"), ("parallel", "  post_note {"), ("call", "  get_tide {")]
)
def test_chosen_families_and_scene(capsys: pytest.CaptureFixture[str], scene: str, shown: str) -> None:
    assert main(["demo", "--scene", scene, "hermes", "glm45"]) == 0
    out = capsys.readouterr().out
    assert out.count(shown) >= 2
    assert out.endswith("2 families. Every way gave the same trays.\n")


def test_different_trays_are_told_and_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_complete", lambda client, model: demo._Trays(content="other"))
    assert main(["demo", "hermes"]) == 1
    out = capsys.readouterr().out
    assert out.count("not streamed: DIFFERENT") == 2
    assert "Some ways gave different trays." in out


def test_an_unknown_family_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "hermse"]) == 2
    assert "'hermes'" in capsys.readouterr().err


def test_on_a_terminal_the_trays_fill_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr(demo, "DELAY", 0.001)
    assert main(["demo", "hermes"]) == 0
    frames = terminal.getvalue().split("\x1b[J")
    raw = recordings()["hermes"].scenes["call"]
    assert len(frames) > len(raw) // 4
    assert "finish_reason: …" in frames[1]
    assert "finish_reason: tool_calls" in frames[-1]


def test_each_drawing_takes_the_place_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    screen = Screen(terminal)
    screen.draw([Line("a"), Line("b", BOLD)], [Line("c")])
    screen.draw([Line("a")], [Line("d", DIM)])
    first, second = terminal.getvalue().split("\x1b[2A\x1b[J")
    assert [line.split() for line in first.splitlines()] == [["a", "│", "c"], [BOLD + "b", "\x1b[0m", "│"]]
    assert f"│ {DIM}d\x1b[0m" in second
    screen.settle([Line("e")], [])
    assert terminal.getvalue().count("\x1b[1A\x1b[J") == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a" * 60, ["a" * 53, "a" * 7]),
        ("\uff5c" * 27, ["\uff5c" * 26, "\uff5c"]),
        ("e\u0301" * 60, ["e\u0301" * 53, "e\u0301" * 7]),
        ("a\tb\x1b[2J", ["a\\tb\\x1b[2J"]),
        ("", [""]),
        ("a\n\nb", ["a", "", "b"]),
    ],
)
def test_lines_are_wrapped_by_cells_and_control_characters_shown(
    text: str, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    output = io.StringIO()
    Screen(output).settle(lines_of(text), [Line("|")])
    assert [line.partition(" │")[0].rstrip() for line in output.getvalue().splitlines()] == shown
