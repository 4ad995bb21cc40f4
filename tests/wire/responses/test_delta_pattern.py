"""Delta events that are known by their bytes, and those that must not be taken for one."""

from __future__ import annotations

import json

import pytest

from streamsieve.wire.responses.delta_pattern import DeltaPattern, DeltaPatterns

BODY = {
    "type": "response.output_text.delta",
    "item_id": "msg_1",
    "delta": 'a "b"\n',
    "logprobs": [],
    "output_index": 0,
    "sequence_number": 7,
}
LAST = {**{name: value for name, value in BODY.items() if name != "sequence_number"}, "sequence_number": 7}
FIRST = {"sequence_number": 7, **BODY}
ALONE = {"delta": "a", "sequence_number": 7}


def event(body: dict[str, object], start: bytes = b"event: x\n", space: str = "") -> bytes:
    return start + b"data: " + json.dumps(body, separators=("," + space, ":" + space)).encode() + b"\n\n"


@pytest.mark.parametrize("body", [BODY, LAST, FIRST, ALONE])
@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("start", [b"", b"event: x\n", b"id: 1\r\n"])
def test_the_text_of_events_that_are_alike(body, space, start) -> None:
    pattern = DeltaPattern.learn(event(body, start, space), body)
    assert pattern is not None
    for text in ("", "x", 'say "hi" \\ \n', "ø 😀", "data: "):
        assert pattern.text(event({**body, "delta": text, "sequence_number": 12345}, start, space)) == text


UNLIKE = [
    event({**BODY, "output_index": 1}),
    event({**BODY, "logprobs": [{"token": "a"}]}),
    event({**BODY, "delta": None}),
    event({**BODY, "more": 1}),
    event(BODY) + event(BODY),
    event(BODY)[:-1],
    event(BODY, b"event: y\n"),
    event({**BODY, "sequence_number": -1}),
    event(BODY).replace(b"\\n", b"\n"),
    event(BODY).replace(b'a \\"b', b"\\ud83d"),
]


@pytest.mark.parametrize("raw", UNLIKE)
def test_others_are_not_taken_for_it(raw) -> None:
    pattern = DeltaPattern.learn(event(BODY), BODY)
    assert pattern is not None
    assert pattern.text(raw) is None


# events that have no pattern, and what they hold
PATTERNLESS = [
    (event({"delta": "a"}), {"delta": "a"}),
    (event({"sequence_number": 1}), {"sequence_number": 1}),
    (event({**BODY, "more": {"delta": "b"}}), {**BODY, "more": {"delta": "b"}}),
    (event({"more": {"delta": "b"}, "sequence_number": 1}), {"more": {"delta": "b"}, "sequence_number": 1}),
    (event(BODY) + event(BODY), BODY),
]


@pytest.mark.parametrize(("raw", "body"), PATTERNLESS)
def test_what_has_no_pattern(raw, body) -> None:
    assert DeltaPattern.learn(raw, body) is None


def test_patterns_of_no_use_are_not_made_for_ever() -> None:
    patterns = DeltaPatterns()
    for number in range(100):
        body = {**BODY, "obfuscation": str(number)}
        patterns.learn(event(body), body)
    assert patterns.newest is None


def test_a_pattern_that_is_of_use_may_be_followed_by_others() -> None:
    patterns = DeltaPatterns()
    for number in range(100):
        body = {**BODY, "output_index": number}
        patterns.learn(event(body), body)
        assert patterns.newest is not None
        assert patterns.newest.text(event(body)) == BODY["delta"]
