"""Special tokens told apart from the same characters typed (contract, rule 2)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.conformance import cases
from streamsieve.parsers.conformance.cases import Case
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector, Message
from streamsieve.parsers.tokens import SpecialTokens

FILES = sorted((Path(__file__).parents[1] / "cases").glob("*.jsonl"))
TYPED = 0  # an id that no special token has
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


def known(case: Case) -> bool:
    listing = registry.listing()
    tools, thinks = ({row["name"] for row in listing[kind]} for kind in ("tool", "reasoning"))
    return {case.tool_parser} <= {None, *tools} and {case.reasoning_parser} <= {None, *thinks}


CASES = [case for file in FILES for case in cases.load(file) if case.special and known(case)]


def tokens_of(special: list[str]) -> SpecialTokens:
    return SpecialTokens(dict(enumerate(special, TYPED + 1)))


def tokenized(text: str, tokens: SpecialTokens) -> list[tuple[str, list[int]]]:
    """`text` as a tokenizer would cut it whose other tokens are single characters."""
    ids = {special: number for number, special in tokens.texts.items()}
    longest = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
    return [(piece, [ids.get(piece, TYPED)]) for piece in re.findall(rf"{longest}|.", text, re.DOTALL)]


def fed(
    format: Format, deltas: list[tuple[str, list[int]]], tokens: SpecialTokens, request: Request, finish: str
) -> Message:
    machine = format.machine(request, tokens=tokens)
    collector = Collector()
    for text, ids in deltas:
        collector.add(machine.feed(text, ids))
    collector.add(machine.finish(finish))
    return collector.message(finish, request)


def told(message: Message) -> tuple[object, ...]:
    return message.reasoning, message.content, [(call.name, call.arguments) for call in message.tool_calls]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_ids_and_text_alone_give_the_same_trays(case: Case) -> None:
    format = registry.select(
        tool_parser=case.tool_parser, reasoning_parser=case.reasoning_parser, response_template=case.response_template
    )
    assert format is not None
    tokens = tokens_of(list(case.special))
    deltas = tokenized(case.raw, tokens)
    finish = str(case.engine_finish)
    by_ids = fed(format, deltas, tokens, case.request, finish)
    assert told(by_ids) == told(read(format, [text for text, _ in deltas], case.request, finish))


CALL = '<tool_call>{"name": "f"}</tool_call>'
TYPED_MARKERS = [
    # deltas (text, the special tokens in it), reasoning, content, calls
    ([("Say </think>.", []), ("</think>", ["</think>"]), ("Hi", [])], "Say </think>.", "Hi", 0),
    ([("</think>", ["</think>"]), (f"Write {CALL}!", [])], None, f"Write {CALL}!", 0),
    ([("</think>", ["</think>"]), ("<tool_", []), ('call>{"name": "f"}', [])], None, '<tool_call>{"name": "f"}', 0),
    (
        [
            ("</think>", ["</think>"]),
            ("<tool_call>", ["<tool_call>"]),
            ('{"name": "f"}', []),
            ("</tool_call>", ["</tool_call>"]),
        ],
        None,
        None,
        1,
    ),
    ([("</think>", ["</think>"]), ("a<|im_end|>b", []), ("<|im_end|>", ["<|im_end|>"])], None, "a<|im_end|>b", 0),
    # one delta of several tokens
    ([(f"x</think>{CALL}", ["</think>", "<tool_call>", "</tool_call>"])], "x", None, 1),
]


@pytest.mark.parametrize(("deltas", "reasoning", "content", "calls"), TYPED_MARKERS)
def test_what_is_only_typed_is_text(
    deltas: list[tuple[str, list[str]]], reasoning: str | None, content: str | None, calls: int
) -> None:
    format = registry.select(tool_parser="hermes", reasoning_parser="qwen3")
    assert format is not None
    tokens = tokens_of(["<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>"])
    ids = {text: number for number, text in tokens.texts.items()}
    pieces = [(text, [TYPED, *(ids[special] for special in specials), TYPED]) for text, specials in deltas]
    message = fed(format, pieces, tokens, Request.from_body({"tools": TOOLS}), "stop")
    assert (message.reasoning, message.content, len(message.tool_calls)) == (reasoning, content, calls)


def test_many_tokens_are_forgotten_again() -> None:
    """What is noted of tokens does not grow with the reply."""
    format = registry.select(tool_parser="hermes", reasoning_parser=None)
    assert format is not None
    tokens = tokens_of(["<think>"])
    machine = format.machine(Request.from_body({"tools": TOOLS}), tokens=tokens)
    for _ in range(5_000):
        machine.feed("<think>", [1])
    places = machine._reader.places
    assert places is not None
    assert len(places) < 2_000


def test_added_tokens_are_read_from_a_tokenizer(tmp_path: Path) -> None:
    added = [{"id": 7, "content": "<think>", "special": False}, {"id": 9, "content": "<|im_end|>", "special": True}]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
    assert SpecialTokens.load(tmp_path) == SpecialTokens.load(tmp_path / "tokenizer.json")
    assert SpecialTokens.load(tmp_path).texts == {7: "<think>", 9: "<|im_end|>"}


@pytest.mark.parametrize("content", [None, "no JSON", "[]", '{"added_tokens": [{"id": 1}]}'])
def test_a_tokenizer_without_added_tokens_is_an_error(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ConfigurationError, match=r"tokenizer: (no added_tokens in )?.*tokenizer\.json"):
        SpecialTokens.load(tmp_path)
