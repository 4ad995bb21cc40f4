"""Cases of every family, as responses: the trays are those of the contract, whichever way the text came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamsieve.parsers.conformance.cases import Answer, Case, judge, read
from streamsieve.wire.settings import Settings

CASES = Path(__file__).parents[2] / "cases"
FILES = sorted(path.name for path in CASES.glob("*.jsonl"))
EVERY = 4
"""One case in so many is run."""

DELTA = 3


def sample(name: str) -> list[tuple[Case, dict[str, Any], dict[str, Any]]]:
    """Cases of a file, with the request of each and options for it."""
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()[::EVERY]
    found = []
    for line in lines:
        case, fields = read(line), json.loads(line)
        if case.response_template is None and case.expect is not None:
            request = {**(fields.get("request") or {}), "tools": list(map(flat, fields.get("tools") or []))}
            if isinstance(choice := request.get("tool_choice"), dict):
                request["tool_choice"] = flat(choice)
            options = {
                "tool_parser": case.tool_parser,
                "reasoning_parser": case.reasoning_parser,
                "prompt_tail": case.request.prompt_tail,
            }
            found.append((case, request, options))
    return found


def flat(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", **tool["function"]}


def differences(case: Case, expected: Answer | None, response: dict[str, Any], trays_of: Any) -> list[str]:
    reasoning, content, calls = trays_of(response["output"])
    named = [{"name": name, "arguments_text": arguments} for name, arguments in calls]
    judged = {name: tray for name, tray in (expected or {}).items() if name != "finish_reason"}  # a response has none
    got = {"reasoning": reasoning, "content": content, "tool_calls": named}
    return [f"{case.id}: {difference}" for difference in judge(case, judged, got)]


@pytest.mark.parametrize("name", FILES)
def test_made_of_chat_completions(name, driver, chat, trays_of) -> None:
    found = []
    for case, request, options in sample(name):
        settings = Settings(**options, responses="translate")
        streamed = driver.stream(settings, chat.reply(case.raw, DELTA, case.engine_finish), request).check().response
        whole = driver.whole(settings, chat.whole({"content": case.raw}, case.engine_finish), request)
        found += differences(case, case.expect_stream, streamed, trays_of)
        found += differences(case, case.expect, whole, trays_of)
    assert found == []


@pytest.mark.parametrize("name", FILES)
def test_of_an_upstream_with_the_api(name, driver, upstream, trays_of) -> None:
    found = []
    for case, request, options in sample(name):
        settings = Settings(**options)
        end = INCOMPLETE if case.engine_finish == "length" else {}
        streamed = driver.stream(settings, upstream.reply(case.raw, DELTA, **end), request).response
        whole = driver.whole(settings, upstream.whole([upstream.message(case.raw)], **end), request)
        found += differences(case, case.expect_stream, streamed, trays_of)
        found += differences(case, case.expect, whole, trays_of)
    assert found == []


INCOMPLETE = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
