"""Replies that the token limit cut anywhere (contract, rule 8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamsieve.parsers.conformance import cases
from streamsieve.parsers.conformance.cases import Case
from streamsieve.parsers.reading import read
from streamsieve.parsers.results import Message

FAMILIES = sorted((Path(__file__).parents[1] / "cases").glob("**/*.jsonl"))
# A template of one's own need not know the tokens that end a turn, so the beginning of one may break a call.
KNOWN = [file for file in FAMILIES if file.stem != "response_template"]
WHOLE = [case for file in KNOWN for case in cases.load(file) if case.expect == case.expect_stream]
CUTS = 40
"""In how many places a reply is cut, at most: other ones in each case."""


def trays(message: Message) -> tuple[object, ...]:
    return message.reasoning, message.content, [(call.name, call.arguments) for call in message.tool_calls]


@pytest.mark.parametrize("case", WHOLE, ids=[case.id for case in WHOLE])
def test_a_cut_reply_keeps_its_calls_and_is_the_same_whole(case: Case) -> None:
    """A call that is real stays one however much more of the reply comes, and no cut breaks it."""
    format, step = case.format(), 1 + len(case.raw) // CUTS
    assert format is not None
    known = 0
    for end in range(1 + len(case.id) % step, len(case.raw) + 1, step):
        text = case.raw[:end]
        whole = read(format, [text], case.request, "length", whole=True)
        assert trays(whole) == trays(read(format, [text], case.request, "length")), text
        assert len(whole.tool_calls) >= known, f"a call vanished behind {text!r}"
        known = len(whole.tool_calls)
