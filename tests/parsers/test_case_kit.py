"""The conformance kit itself: what it reads, in which ways it runs a case, and what it tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamsieve.parsers.conformance import cases
from streamsieve.parsers.conformance.cases import Case, CaseError, Difference
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.results import Message, ToolCall


def line(**fields: object) -> str:
    return json.dumps({"id": "a", "raw": "Hi 👋", "engine_finish": "stop", **fields})


def case(**fields: object) -> Case:
    return cases.read(line(**fields))


def test_a_line_becomes_a_case_with_the_request_it_answered() -> None:
    found = case(
        tool_parser="hermes",
        reasoning_parser=None,
        tools=[{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}],
        request={"parallel_tool_calls": False, "include_reasoning": False, "chat_template_kwargs": {"thinking": True}},
        prompt_tail="<think>",
        special=["<think>"],
        note="for the reader",
    )
    request = found.request
    assert (found.id, found.raw, found.engine_finish, found.tool_parser) == ("a", "Hi 👋", "stop", "hermes")
    assert request.parse_calls
    assert list(request.tools) == ["ping"]
    assert not request.parallel_tool_calls
    assert not request.include_reasoning
    assert request.chat_template_kwargs == {"thinking": True}
    assert request.prompt_tail == "<think>"
    assert found.expect is found.expect_stream is None
    assert not case(tools=[{"function": {"name": "ping"}}], request={"tool_choice": "none"}).request.parse_calls


def test_chunks_can_stand_for_raw() -> None:
    found = cases.read('{"chunks": ["a", "", "b"]}')
    assert (found.raw, found.chunks) == ("ab", ("a", "", "b"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "raw: "),
        ('{"raw": 1}', "raw: "),
        ('{"raw": "a", "chunks": "a"}', "chunks: not a list of strings"),
        ('{"raw": "a", "chunks": [1]}', "chunks: not a list of strings"),
        ('{"raw": "a", "chunks": ["b"]}', "chunks: joined they are not raw"),
        ('{"raw": "a", "request": []}', "request: not an object"),
        ('{"raw": "a", "tool_parser": 1}', "tool_parser: not a string"),
        ('{"raw": "a", "expect": []}', "expect: not an object"),
        ('{"raw": "a", "expect": {"thoughts": "b"}}', "expect: unknown tray 'thoughts'"),
        ('{"raw": "a", "expect_stream": {"tool_calls": [{}]}}', "expect_stream: tool_calls"),
        ('{"raw": "a", "compare": "vaguely"}', "compare: 'vaguely' is neither exact nor soft"),
    ],
)
def test_a_line_that_is_no_case_says_why(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=f"^{why}"):
        cases.read(text)
    file = tmp_path / "some.jsonl"
    file.write_text(f"{line()}\n\n{text}\n")
    found = cases.load(file)
    assert next(found).id == "a"
    with pytest.raises(CaseError, match=rf"some\.jsonl:3: {why}"):
        next(found)


def test_the_ways_are_whole_by_characters_own_chunks_and_every_cut() -> None:
    assert [(way.name, way.chunks) for way in cases.ways(case(raw="abc", chunks=["abc", ""]))] == [
        ("whole", None),
        ("char by char", ("a", "b", "c")),
        ("own chunks", ("abc", "")),
        ("cut at 1", ("a", "bc")),
        ("cut at 2", ("ab", "c")),
    ]
    assert cases.in_pieces(case(raw="abcde"), 2).chunks == ("ab", "cd", "e")
    assert [way.name for way in cases.ways(case(raw=""))] == ["whole", "char by char"]


TRAYS = {"reasoning": "r", "content": "c", "tool_calls": [], "finish_reason": "stop"}


def calls(arguments: str, name: str = "f") -> list[ToolCall]:
    return [ToolCall("id", name, arguments)]


@pytest.mark.parametrize(
    ("fields", "expect", "message", "wrong"),
    [
        ({}, {}, Message("r", "c", calls("{}"), "stop"), set()),
        ({}, TRAYS, Message("r", "c", [], "stop"), set()),
        ({}, TRAYS, Message("r ", "c\n", [], "stop"), {"reasoning", "content"}),
        ({}, TRAYS, Message(None, "c", [], "length"), {"reasoning", "finish_reason"}),
        ({}, {"content": None}, Message(content=""), {"content"}),
        ({"compare": "soft"}, TRAYS, Message(" r ", "c\n", [], "stop"), set()),
        ({"compare": "soft"}, {"content": None}, Message(content=""), set()),
        ({"compare": "soft"}, {"content": "c"}, Message(content=None), {"content"}),
        ({"compare": "soft"}, {"tool_calls": []}, Message(tool_calls=calls("{}")), {"tool_calls"}),
        ({"ignore": ["content"]}, TRAYS, Message("x", "x", [], "stop"), {"reasoning"}),
        ({"ignore": ["tool_calls"]}, TRAYS, Message("r", "c", calls("{}"), "stop"), set()),
        ({"forbid": ["<t"]}, {}, Message("a <t", None), {"reasoning"}),
        ({"forbid": ["<t", "x"]}, {}, Message(None, "<tx"), {"content"}),
        ({"forbid": ["<t"]}, {}, Message(tool_calls=calls('{"a": "<t"}')), set()),
        ({}, {"tool_calls": [{"name": "f"}]}, Message(tool_calls=calls("oops")), set()),
        ({}, {"tool_calls": [{"name": "f"}]}, Message(tool_calls=calls("{}", "g")), {"tool_calls"}),
        ({}, {"tool_calls": None}, Message(), set()),
        ({}, {"tool_calls": [{"name": "f"}]}, Message(), {"tool_calls"}),
        ({}, {"tool_calls": [{"name": "f"}]}, Message(tool_calls=calls("") * 2), {"tool_calls"}),
    ],
)
def test_judging(fields: dict[str, object], expect: dict[str, object], message: Message, wrong: set[str]) -> None:
    found = cases.judge(case(**fields), expect, cases.trays(message))
    assert {difference.tray for difference in found} == wrong


@pytest.mark.parametrize(
    ("expected", "text", "same"),
    [
        ({"arguments": {"a": 1, "b": "é"}}, '{"b":"\\u00e9" ,"a":1}', True),
        ({"arguments": {"a": 1}}, '{"a": true}', False),
        ({"arguments": {"a": 1}}, '{"a": 1.0}', False),
        ({"arguments": {"a": 1}}, '{"a": "1"}', False),
        ({"arguments": {"a": None}}, "{}", False),
        ({"arguments": {}}, "", False),
        ({"arguments": {}}, "{", False),
        ({"arguments": {"a": [1, 2]}}, '{"a": [2, 1]}', False),
        ({"arguments_text": '{"a": '}, '{"a": ', True),
        ({"arguments_text": '{"a":1}'}, '{"a": 1}', False),
    ],
)
def test_arguments_are_compared_as_json_and_cut_ones_as_text(
    expected: dict[str, object], text: str, same: bool
) -> None:
    found = cases.judge(
        case(), {"tool_calls": [{"name": "f", **expected}]}, cases.trays(Message(tool_calls=calls(text)))
    )
    assert (not found) == same


BROKEN = '<tool_call>{"name": "f", "arguments": {"a": 1, b}}</tool_call>'
AS_TEXT = {"content": BROKEN, "tool_calls": [], "finish_reason": "stop"}
AS_CALL = {"tool_calls": [{"name": "f", "arguments_text": '{"a": 1, '}], "finish_reason": "tool_calls"}


def malformed(**fields: object) -> Case:
    return case(raw=BROKEN, tool_parser="hermes", tools=[{"function": {"name": "f"}}], **fields)


def test_a_malformed_case_expects_one_thing_whole_and_another_streamed() -> None:
    assert not list(cases.check(malformed(expect=AS_TEXT, expect_stream=AS_CALL)))
    every = {way.name for way in cases.ways(malformed())}
    assert {failure.way for failure in cases.check(malformed(expect=AS_TEXT))} == every - {"whole"}


def test_ways_that_disagree_fail_whatever_is_expected() -> None:
    failures = list(cases.check(malformed(expect={})))
    assert "whole" not in {failure.way for failure in failures}
    assert failures[0].differences[0] == Difference("content", BROKEN, None)
    assert not list(cases.check(malformed(expect={}, ignore=["content", "tool_calls", "finish_reason"])))
    every = {way.name for way in cases.ways(malformed())}
    assert {failure.way for failure in cases.check(malformed(expect=AS_CALL))} == every


def test_without_parsers_the_reply_is_content() -> None:
    assert not list(cases.check(case(expect={"content": "Hi 👋", "reasoning": None, "finish_reason": "stop"})))
    assert not list(cases.check(case(raw="", expect={"content": None})))


def test_unknown_parser_names_are_wrong_configuration() -> None:
    with pytest.raises(ConfigurationError, match="tool_parser: unknown name 'hermse'"):
        list(cases.check(case(tool_parser="hermse")))


def test_a_parser_that_raises_is_told_as_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> Message:
        raise IndexError("pop from empty list")

    monkeypatch.setattr(cases, "run", explode)
    failures = list(cases.check(case(raw="ab", tool_parser="hermes")))
    assert [failure.way for failure in failures] == ["whole", "char by char", "cut at 1"]
    assert failures[0].differences == (Difference("error", None, "IndexError('pop from empty list')"),)
