"""`streamsieve list --markdown`, and docs/formats.md, which is what it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamsieve.cli import format_trials, formats_page
from streamsieve.cli.format_markers import code, meanings
from streamsieve.cli.main import main
from streamsieve.parsers import registry
from streamsieve.parsers.calls.json_object import JsonObjectCalls
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
JSON_CALLS = Format(
    name="one", tool_names=("one",), calls=JsonObjectCalls(openers=("<do>",), closers=("</do>",)), ends=("<eos>",)
)
TAGGED = Format(
    name="two",
    tool_names=("two",),
    reasoning_names=("second", "zweites"),
    reasoning=ReasoningSpan(
        pairs=(("<t>", "</t>"),), starts="marked", switch=Switch(keys=("plan",), default=False), stray_closer="dropped"
    ),
    calls=TaggedCalls(
        openers=("<call=",),
        name_close=">",
        closers=("</call>",),
        parameter=Parameter(open="<p=", key_close=">", value_close="</p>"),
    ),
)
SPOKEN = Format(name="three", reasoning_names=("three",), reasoning=ReasoningSpan(pairs=(("<t>", "</t>"),)))


def test_the_page_on_disk_is_what_the_formats_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--markdown"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(encoding="utf-8"), "docs/formats.md is stale: make formats"


def test_every_name_is_in_its_table_and_leads_to_a_section() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    sections = re.findall(r"^## (\S+)$", page, re.MULTILINE)
    tools = {entry["name"]: entry["format"] for entry in registry.listing()["tool"] if _is_ours(entry)}
    thinkers = {entry["name"]: entry["format"] for entry in registry.listing()["reasoning"] if _is_ours(entry)}
    assert {name: cell for name, cell, _ in rows if cell} == {k: f"[{v}](#{v})" for k, v in tools.items()}
    assert {name: cell for name, _, cell in rows if cell} == {k: f"[{v}](#{v})" for k, v in thinkers.items()}
    assert {*tools.values(), *thinkers.values()} <= set(sections)


def _is_ours(entry: registry.NameEntry) -> bool:
    return entry["distribution"] == "streamsieve"


def test_a_page_of_two_formats() -> None:
    page = formats_page.page([(TAGGED, "Models two."), (JSON_CALLS, "Models one.")])
    assert page.index("## one") < page.index("## two")
    for line in (
        "Models one.",
        "| `second` |  | [two](#two) |",
        "- reasoning parser: `second`, `zweites`",
        "- thinking switch: `plan` true or false; off by default; off, think tags are text",
        "- structural tag: yes",
        "- round thinking: `<t>` … `</t>`",
        "- dropped in an answer: `</t>`",
        "- end of the turn, dropped: `<eos>`",
        "- how a call is written: `<do>\\n{",
        "- arguments: strings and other values leave as they come",
        "- arguments: strings leave as they come, other values when they are complete",
        '- cut in a string argument: the call `get_tides` with `{"port": "Saint`',
        '- cut in another argument: the call `get_tides` with `{"port": "Saint-Malo", "hours": [4`',
        '- cut in another argument: the call `get_tides` with `{"port": "Saint-Malo"`',
        "- cut in thinking: reasoning `Both port`",
    ):
        assert line in page, line


def test_the_name_leaves_where_the_trial_says() -> None:
    assert format_trials.attempt(JSON_CALLS).first_sign == '<do>\n{"name": "get_tides", "arguments": {'
    assert format_trials.attempt(TAGGED).first_sign == "<call=get_tides>\n<p="


def test_a_format_without_calls_is_tried_without_them() -> None:
    trial = format_trials.attempt(SPOKEN)
    assert (trial.raw, trial.first_sign, trial.streamed) == ("<t>Both ports, today.</t>I look it up.", "", {})
    assert [cut.where for cut in trial.cuts] == ["in thinking"]
    assert ("round thinking", "`<t>` … `</t>`") in list(meanings(SPOKEN))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<a>", "`<a>`"),
        ("a\nb", r"`a\nb`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("```json", "```` ```json ````"),
        (" a", "` a`"),
        (" a ", "`  a  `"),
    ],
)
def test_inline_code(text: str, shown: str) -> None:
    assert code(text) == shown
