"""The case files of every family whose parser names exist: whole, by characters, in own chunks, at every cut."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.conformance import cases
from streamsieve.parsers.conformance.cases import Case

HERE = Path(__file__).parents[1] / "cases"
FILES = sorted(HERE.glob("*.jsonl"))
OWN = [case for file in sorted((HERE / "own").glob("*.jsonl")) for case in cases.load(file)]

# Cases of families that are not built yet, by file. Every one of the others runs.
PENDING: dict[str, int] = {}


def is_built(case: Case) -> bool:
    listing = registry.listing()
    tool = {"none", *(row["name"] for row in listing["tool"])}
    reasoning = {"none", *(row["name"] for row in listing["reasoning"])}
    return (case.tool_parser or "none") in tool and (case.reasoning_parser or "none") in reasoning


ALL = [(file.stem, case) for file in FILES for case in cases.load(file)]
BUILT = [case for _, case in ALL if is_built(case)] + OWN
every_case = pytest.mark.parametrize("case", BUILT, ids=[case.id for case in BUILT])


def told(failures: list[cases.Failure]) -> str:
    """The first few failures, as a person reads them."""
    lines = [f"{len(failures)} ways fail"]
    for failure in failures[:3]:
        lines.append(f"{failure.way} of {failure.case.raw!r}")
        lines += [f"  {it.tray}: expected {it.expected!r}, got {it.got!r}" for it in failure.differences]
    return "\n".join(lines)


@every_case
def test_whole(case: Case) -> None:
    failures = list(cases.check(case, [cases.whole()]))
    assert not failures, told(failures)


@every_case
def test_every_way(case: Case) -> None:
    failures = list(cases.check(case))
    assert not failures, told(failures)


@every_case
def test_held_calls_make_streaming_equal_whole(case: Case) -> None:
    """`deliver="complete"` (contract, rule 7); a call that was cut then stays text (rule 8)."""
    format = case.format()
    whole = cases.run(case, cases.whole(), format)
    held = cases.run(case, cases.in_pieces(case, 1), format, deliver="complete")
    if any(repair.rule == "cut_call" for repair in whole.repairs):
        assert len(held.tool_calls) == len(whole.tool_calls) - 1
    else:
        assert cases.trays(held) == cases.trays(whole)


def test_no_case_vanishes() -> None:
    assert Counter(stem for stem, case in ALL if not is_built(case)) == PENDING
    assert len({case.id for _, case in ALL}) == len(ALL) == 689
