"""The pytest plugin, run by pytest on formats that keep the laws and on formats that break one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CASES = [
    {
        "id": "one",
        "tool_parser": "mine",
        "reasoning_parser": "mine",
        "tools": [{"type": "function", "function": {"name": "ping"}}],
        "raw": '<plan>a</plan>b<do>{"name": "ping", "arguments": {}}</do>',
        "chunks": ["<plan>a</plan>b<do>", '{"name": "ping", "arguments": {}}</do>'],
        "engine_finish": "stop",
        "expect": {"reasoning": "a", "content": "b", "tool_calls": [{"name": "ping", "arguments": {}}]},
    },
    {"id": "two", "tool_parser": "mine", "reasoning_parser": "qwen3", "raw": "c", "expect": {"reasoning": "c"}},
]
MINE = """
from dataclasses import dataclass, replace
from streamsieve.parsers.calls.json_object import JsonObjectCalls
from streamsieve.parsers.conformance import Conformance
from streamsieve.parsers.format import Format
from streamsieve.parsers.machine import Machine
from streamsieve.parsers.reasoning import ReasoningSpan

MINE = Format(
    name="mine",
    tool_names=("mine",),
    reasoning_names=("mine",),
    reasoning=ReasoningSpan(pairs=(("<plan>", "</plan>"),)),
    calls=JsonObjectCalls(openers=("<do>",), closers=("</do>",)),
)
"""
TESTS = (
    MINE
    + """
class TestMine(Conformance):
    format = MINE
    cases = "cases.jsonl"
"""
)
CASE_TESTS = ("whole", "by_characters", "at_every_cut", "in_its_own_chunks", "with_calls_held")
LAWS = (
    "one_answer_however_cut",
    "any_text_gives_an_answer",
    "plain_text_is_kept",
    "nothing_is_invented",
    "what_is_rendered_is_read",
    "deltas_leave_at_once",
    "a_marker_alone_sends_nothing",
    "work_grows_with_the_text_alone",
)


def run(pytester: pytest.Pytester, source: str, *options: str, cases: object = CASES) -> pytest.RunResult:
    """A project of this one test file and its cases, run as its author would run it."""
    lines = cases if isinstance(cases, list) else []
    pytester.path.joinpath("cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pytester.makepyfile(test_mine=source)
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nfilterwarnings = ['error']\n")
    few = ("--streamsieve-examples", "15", "-p", "no:asyncio", "-p", "no:hypothesispytest")
    return pytester.runpytest_subprocess("-v", *few, *options)


def test_a_format_and_a_case_file_are_all_it_takes(pytester: pytest.Pytester) -> None:
    result = run(pytester, TESTS)
    result.assert_outcomes(passed=len(LAWS) + 2 * len(CASE_TESTS) - 1, skipped=1)
    for name in LAWS:
        result.stdout.fnmatch_lines([f"*::TestMine::test_{name} PASSED*"])
    for name in CASE_TESTS:
        result.stdout.fnmatch_lines([f"*::TestMine::test_case_{name}[[]one[]] PASSED*"])
    result.stdout.fnmatch_lines(["*test_case_in_its_own_chunks[[]two[]] SKIPPED*"])


def test_a_format_without_cases_has_the_laws(pytester: pytest.Pytester) -> None:
    result = run(pytester, TESTS.replace("    cases =", "    nothing ="))
    result.assert_outcomes(passed=len(LAWS), skipped=len(CASE_TESTS))


BREAKING = {
    "plain_text_is_kept": "text.upper()",
    "one_answer_however_cut": "text + '.' * (len(text) == 1)",
    "nothing_is_invented": "text.replace('f', 'ff')",
    "what_is_rendered_is_read": "text[:3] + text[3:].replace('a', '') if len(text) == 4 else text",
    "deltas_leave_at_once": "'' if text == ' ' else text.rstrip('e')",
    "any_text_gives_an_answer": "text if len(text) != 1000 else text[10**6]",
    "work_grows_with_the_text_alone": "[self.seen.append(text), [len(one) for one in self.seen], text][2]",
    "a_marker_alone_sends_nothing": "text.replace('</plan>', '</plan>!')",
}


@pytest.mark.parametrize("law", LAWS)
def test_a_format_that_breaks_a_law_is_told_so(pytester: pytest.Pytester, law: str) -> None:
    source = (
        MINE
        + f"""
class Breaking(Machine):
    seen = []

    def feed(self, text, token_ids=None):
        return super().feed({BREAKING[law]})


class Broken(Format):
    def machine(self, request, *, deliver="stream", whole=False, tokens=None):
        return Breaking(self, request, deliver=deliver, whole=whole)


class TestBroken(Conformance):
    format = Broken(**{{name: getattr(MINE, name) for name in MINE.__dataclass_fields__}})
"""
    )
    result = run(pytester, source, "-k", law)
    result.assert_outcomes(failed=1, deselected=len(LAWS) + len(CASE_TESTS) - 1)


def test_a_case_that_does_not_hold_is_told_with_what_came_out(pytester: pytest.Pytester) -> None:
    wrong = [{**CASES[1], "expect": {"reasoning": None, "content": "c"}}]
    result = run(pytester, TESTS, "-k", "case_whole", cases=wrong)
    result.stdout.fnmatch_lines(["*1 ways fail", "*whole of 'c'", "*reasoning: expected None, got 'c'"])
    result.assert_outcomes(failed=1, deselected=len(LAWS) + len(CASE_TESTS) - 1)


def test_a_case_of_other_formats_is_refused(pytester: pytest.Pytester) -> None:
    other = [{**CASES[1], "tool_parser": "hermes"}]
    result = run(pytester, TESTS, "-k", "case_whole", cases=other)
    result.stdout.fnmatch_lines(["*ConfigurationError: case two: neither of its parsers is one of mine: mine"])


def test_the_same_texts_come_again_unless_the_seed_is_another(pytester: pytest.Pytester) -> None:
    told = (
        MINE
        + """
class TestMine(Conformance):
    format = MINE

    def test_one_answer_however_cut(self, request):
        print([random.random() for random in self._randoms(request)])
"""
    )
    seen = [
        next(line for line in run(pytester, told, "-s", "-k", "one_answer", *options).outlines if "[0." in line)
        for options in ((), (), ("--streamsieve-seed", "1"))
    ]
    assert seen[0] == seen[1] != seen[2]
    assert seen[0].count(",") == 14


def test_without_the_plugin_the_class_does_the_same(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=TESTS.replace("    cases =", "    nothing ="))
    result = pytester.runpytest_subprocess("-p", "no:streamsieve", "-p", "no:asyncio", "-k", "plain_text")
    result.assert_outcomes(passed=1, deselected=len(LAWS) + len(CASE_TESTS) - 1)


def test_the_plugin_costs_little_and_takes_nothing_over() -> None:
    """What pytest pays for it in projects that never use it: no framework, no format, no fixture."""
    code = (
        "import sys, streamsieve.parsers.conformance as kit; "
        "print(*sys.modules); print(*(name for name in vars(kit) if 'fixture' in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    loaded, fixtures = done.stdout.splitlines()
    brought = {name for name in loaded.split() if name.startswith("streamsieve.")}
    assert brought == {"streamsieve.parsers", "streamsieve.parsers.conformance"}
    assert fixtures == ""


def test_the_example_is_the_one_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "examples" / "plugin" / "tests" / "test_conformance.py").read_text()
    assert "class TestAcme(Conformance):\n    format = ACME\n    cases = " in text
