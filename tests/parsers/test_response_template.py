"""Response templates: what is wrong with one, the laws for replies read by one, and signs that come in pieces."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.conformance import laws, specimens
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.response_template.loose_json import Dialect, closed_members, loose_value
from streamsieve.parsers.response_template.signs import Sign, Signs, literal
from streamsieve.parsers.scanner import EndOfText, Reader

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "response_template.jsonl").read_text().splitlines()
]
TEMPLATES = {json.dumps(case["response_template"]): case["id"] for case in CASES}
OPEN = {"open": "<c>", "close": "</c>", "content": "json"}


def chosen(template: object, tool: str | None = "hf", reasoning: str | None = "hf") -> Format:
    format = registry.select(tool_parser=tool, reasoning_parser=reasoning, response_template=template)  # type: ignore[arg-type]
    assert format is not None
    return format


def template(**fields: object) -> dict[str, object]:
    return {"fields": {"thinking": {"open": "<t>", "close": "</t>"}, "tool_calls": OPEN, **fields}}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (None, ["response_template", "missing", "tokenizer_config.json"]),
        ({"fields": {"thinking": {"open": "<t>"}}}, ["tool_calls is missing", "tool_parser"]),
        ({"fields": {"tool_calls": OPEN}}, ["thinking is missing", "reasoning_parser"]),
        ({**template(), "version": 2}, ["version", "2"]),
        ({**template(), "start": "x"}, ["'start'", "start_anchor"]),
        ({**template(), "defaults": {"tone": 1}}, ["'tone'", "role"]),
        ({**template(), "start_anchor": "a", "start_anchor_pattern": "b"}, ["start_anchor", "both"]),
        ({**template(), "start_anchor_pattern": "("}, ["start_anchor_pattern", "'('"]),
        ({}, ["fields"]),
        ({"fields": []}, ["fields", "object"]),
        (template(images={}), ["'images'", "tool_calls"]),
        (template(content={"shut": "x"}), ["'shut'", "close"]),
        (template(content={"close": ""}), ["fields.content.close", "''"]),
        (template(content={"close": []}), ["fields.content.close"]),
        (template(content={"close": "a", "close_pattern": "b"}), ["fields.content.close", "both"]),
        (template(content={"content": "json"}), ["fields.content", "plain text"]),
        (template(content={"join": "\n"}), ["fields.content", "plain text"]),
        (template(thinking={}, content={}), ["thinking, content", "at most one"]),
        (template(tool_calls={"content": "json"}), ["tool_calls", "opener"]),
        (template(tool_calls={**OPEN, "content": "yaml"}), ["'yaml'", "json"]),
        (template(tool_calls={**OPEN, "content_args": {"loose": 1}}), ["'loose'", "unquoted_keys"]),
        (template(tool_calls={**OPEN, "content_args": {"string_delims": ["'"]}}), ["string_delims"]),
        (template(tool_calls={**OPEN, "content": "xml-inline"}), ["tag_pattern", "key and value"]),
        (template(tool_calls={**OPEN, "open": None, "open_pattern": "x*"}), ["open_pattern", "nothing at all"]),
        (template(tool_calls={**OPEN, "transform": "{content}"}), ["transform", "object"]),
        (template(tool_calls={**OPEN, "transform": {"function": {"name": "f-{content.name}"}}}), ["stands alone"]),
        (template(tool_calls={**OPEN, "transform": {"function": {"name": "{nam}"}}}), ["'nam'", "content"]),
    ],
)
def test_a_wrong_template_is_told(wrong: object, told: list[str]) -> None:
    with pytest.raises(ConfigurationError) as error:
        chosen(wrong)
    assert [word for word in told if word not in str(error.value)] == []


def test_hf_goes_with_hf_alone() -> None:
    with pytest.raises(ConfigurationError, match=r"hf.*qwen3|qwen3.*hf"):
        chosen(template(), "hf", "qwen3")
    with pytest.raises(ConfigurationError, match="tokenizer_config"):
        registry.named("tool", "hf").machine(specimens.asked(chosen(template())))


@pytest.mark.parametrize("text", TEMPLATES, ids=TEMPLATES.values())
def test_laws(text: str) -> None:
    """However a reply is cut the answer is one, and nothing in it is invented (contract, rules 1 and 3)."""
    fields = json.loads(text)
    format = chosen(fields, "hf", "hf" if "thinking" in fields["fields"] else None)
    replies = [case["raw"] for case in CASES if json.dumps(case["response_template"]) == text]
    random = Random(20)
    known = specimens.fragments(format, replies)
    known += [text[at : at + 9] for text in replies for at in range(0, len(text), 5)]
    for _ in range(250):
        reply = specimens.reply(random, known)
        sizes = [random.randint(1, 9) for _ in range(3)]
        finish = random.choice(specimens.FINISHES)
        laws.one_answer(format, reply, specimens.request(random, format), finish, sizes)
        laws.invents_nothing(format, reply)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("<a>", "x<a>y", ["x", "<a>", "y"]),
        ("<a>", "x<ab<a", ["x<ab<a"]),
        (r"<f (?P<name>\w+)", "x<f ab c", ["x", "<f ab", " c"]),
        (r"<f (?P<name>\w+)", "<f ", ["<f "]),
        ("a(?:bc|d)+e{2,3}", "-abcdeeee-", ["-", "abcdeee", "e-"]),
        ("a(?:bc|d)+e{2,3}", "abcdef", ["abcdef"]),
        (r"\[x\]\s*", "[x] \n[x]", ["[x] \n", "[x]"]),
        ("<t(?=!)", "<t<t!", ["<t", "<t", "!"]),
        ("[^]a]b?", "]]cab", ["]]", "c", "a", "b"]),
        ("x|yz", "ayxyyz", ["ay", "x", "y", "yz"]),
    ],
)
def test_signs_do_not_see_how_a_text_is_cut(pattern: str, text: str, found: list[str]) -> None:
    for size in range(1, len(text) + 1):
        assert split(Signs((Sign(pattern),)), [text[at : at + size] for at in range(0, len(text), size)]) == found


def test_of_two_signs_the_longer_counts() -> None:
    signs = Signs((literal("<a"), literal("<a>")))
    assert split(signs, ["-<", "a", ">", "<a-"]) == ["-", "<a>", "<a", "-"]


def split(signs: Signs, pieces: list[str]) -> list[str]:
    """The text between signs and the signs, in order."""
    reader, out = Reader(), [""]

    def write(text: str) -> None:
        out[-1] += text

    def reading():  # type: ignore[no-untyped-def]
        while (found := (yield from signs.find(reader, write))) is not None:
            out.extend([found.text, ""])

    run = reading()
    next(run)
    for piece in pieces:
        reader.push(piece)
        next(run)
    reader.ended = True
    with suppress(StopIteration):
        while True:
            run.throw(EndOfText())
    return [text for text in out if text]


GEMMA = Dialect((('<|"|>', '<|"|>'),), bare_keys=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{a:<|"|>x "y" {z}<|"|>,b-c: 7 ,"d":"\\u00e9"}', {"a": 'x "y" {z}', "b-c": 7, "d": "é"}),
        ("{}", {}),
        ("[ [], true, null, -1.5e3 ]", [[], True, None, -1500.0]),
        ("{a:bare}", None),
        ("{a:1,}", None),
        ("{a:1} x", None),
        ('{a:<|"|>x', None),
        ("[" * 5000, None),
    ],
)
def test_loose_json(text: str, value: object) -> None:
    if value is None:
        with pytest.raises((ValueError, RecursionError)):
            loose_value(text, GEMMA)
    else:
        assert loose_value(text, GEMMA) == value


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{", {}),
        ("{a:1", {}),
        ("{a:1,", {"a": 1}),
        ('{a:<|"|>x<|"|>', {"a": "x"}),
        ('{a:<|"|>x', {}),
        ("{a:[1,2],b:{c:1", {"a": [1, 2]}),
        ("", None),
        ("[1", None),
    ],
)
def test_what_of_a_cut_object_is_complete(text: str, members: object) -> None:
    assert closed_members(text, GEMMA) == members
