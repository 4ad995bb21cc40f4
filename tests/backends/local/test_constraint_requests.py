"""Requests: what binds their replies, and which are refused."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from transformers import PreTrainedTokenizerFast

from streamsieve.backends.local.constraints.bound_text import Grammar
from streamsieve.backends.local.constraints.grammar import Grammars, Limits
from streamsieve.backends.local.constraints.request_constraint import Options, RequestConstraint, RequestConstraints
from streamsieve.backends.openai_error import ApiError
from streamsieve.parsers.format import Format
from streamsieve.parsers.formats.harmony import HarmonyMessages
from streamsieve.parsers.registry import select
from streamsieve.parsers.request import Request
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.settings import ToolStrictLevel
from tests.backends.local.constraint_kit import Speaker, may_come, say, write

Body = Mapping[str, object]


class Endless(HarmonyMessages):
    thinking_end = ""


TURN = "<|im_start|>assistant\n"
CLOSED = TURN + "<think>\n\n</think>\n\n"
WEATHER = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 5}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "ping"}},
]
SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}
PASSED_OVER = {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2, "uniqueItems": True}
OLDER = {
    "type": "structural_tag",
    "structures": [{"begin": "<fn>", "schema": SCHEMA, "end": "</fn>"}],
    "triggers": ["<fn>"],
}


def as_json(schema: Body, **more: object) -> Body:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, **more}}}


class Server(Speaker):
    """What the routes have of a model."""

    async def of(
        self,
        body: Body,
        format: Format | None = None,
        *,
        options: Options | None = None,
        grammars: Grammars | None = None,
        tail: str = CLOSED,
    ) -> RequestConstraint | None:
        constraints = RequestConstraints(grammars or self.grammars, format, self.encode, options)
        return await constraints.of(body, Request.from_body(body, prompt_tail=tail))

    async def write(self, body: Body, format: Format | None = None, seed: int = 0, **more: float) -> str:
        """A reply that came to its end."""
        made = await self.of(body, format)
        assert made is not None
        written = write(self.vocabulary, made.start(), seed, taste={ord('"'): 3.0})
        assert written.finish == "stop", written.text
        return written.text

    async def takes(
        self, body: Body, text: str, format: Format | None = None, *, options: Options | None = None
    ) -> bool:
        """Whether a reply may be this text."""
        made = await self.of(body, format, options=options)
        assert made is not None
        constraint = made.start()
        for token in self.encode(text):
            if token not in may_come(constraint, self.vocabulary):
                return False
            say(constraint, [token])
        return bool(self.vocabulary.stops & may_come(constraint, self.vocabulary))


@pytest.fixture(scope="module")
def server(byte_tokenizer: PreTrainedTokenizerFast) -> Iterator[Server]:
    made = Server(byte_tokenizer, [byte_tokenizer.eos_token_id, byte_tokenizer.pad_token_id])
    yield made
    made.grammars.close()


def qwen3(tools: str | None = "hermes") -> Format:
    found = select(reasoning_parser="qwen3", tool_parser=tools)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("body", "taken", "not_taken"),
    [
        ({"response_format": {"type": "json_object"}}, '{"k": [1, null]}', "[1]"),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, '{"a": true}', '{"a": 1}'),
        (as_json(SCHEMA), '{"a": true}', "{}"),
        ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, '{"a": true}', "{}"),
        ({"structured_outputs": {"json": SCHEMA}}, '{"a": false}', '{"b": 1}'),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, '{"a": false}', '{"b": 1}'),
        ({"structured_outputs": {"json_object": True}}, "{}", "1"),
        ({"structured_outputs": {"regex": "[ab]{2}\\d"}}, "ab7", "ab"),
        ({"structured_outputs": {"choice": ["yes", 'no " \\ é']}}, 'no " \\ é', "maybe"),
        ({"structured_outputs": {"grammar": 'root ::= "a" root | "b"'}}, "aab", "aa"),
        ({"structured_outputs": {"structural_tag": OLDER}}, 'x <fn>{"a": true}</fn> y', 'x <fn>{"a": 1}</fn>'),
        ({"response_format": OLDER}, 'x <fn>{"a": true}</fn> y', "<fn>nothing"),
        (
            {"response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "ok"}}},
            "ok",
            "ko",
        ),
        ({"guided_regex": "a+"}, "aa", "b"),
        ({"guided_json": SCHEMA}, '{"a": true}', "[]"),
        ({"guided_choice": ["x", "y"]}, "y", "z"),
        ({"guided_grammar": 'root ::= "q"'}, "q", "r"),
    ],
    ids=str,
)
async def test_sources(server: Server, body: Body, taken: str, not_taken: str) -> None:
    for format in (None, qwen3()):
        assert await server.takes(body, taken, format)
        assert not await server.takes(body, not_taken, format)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"response_format": None},
        {"response_format": {"type": "text"}},
        {"structured_outputs": None},
        {"structured_outputs": {"regex": None}},
        {"tools": TOOLS, "tool_choice": "none"},
        {"tools": []},
        {"thinking_token_budget": None},
    ],
    ids=str,
)
async def test_nothing_demanded(server: Server, body: Body) -> None:
    assert await server.of(body, qwen3()) is None


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({"tool_choice": "required"}, "tool_choice", "only allowed when 'tools' are specified"),
        ({"tools": TOOLS, "tool_choice": "sometimes"}, "tool_choice", "Supported values"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}},
            "tool_choice",
            "no function named 'no'",
        ),
        ({"response_format": "json"}, "response_format", "must be an object"),
        ({"response_format": {"type": "xml"}}, "response_format", "one of text, json_object"),
        ({"response_format": {"type": "json_schema"}}, "response_format", "schema is required"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": 1}}}, "response_format", "JSON schema"),
        ({"response_format": {"type": "structural_tag"}}, "response_format", "structures and triggers"),
        (
            {"response_format": {"type": "structural_tag", "format": {"type": "tag", "begin": 1}}},
            "response_format",
            "the begin of a tag",
        ),
        (as_json({"type": "strin"}), "response_format", 'Unsupported type "strin"'),
        (as_json({"type": "array", "items": {"$ref": "#/$defs/none"}}), "response_format", "none"),
        (as_json({"type": "string", "pattern": "^("}), "response_format", "position"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs", "choose one"),
        ({"structured_outputs": {"regexp": "a"}}, "structured_outputs", "unknown"),
        ({"structured_outputs": {"regex": "(?!a)b"}}, "structured_outputs.regex", "look-around"),
        ({"structured_outputs": {"regex": 1}}, "structured_outputs.regex", "regex"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice", "choice"),
        ({"structured_outputs": {"json": "{"}}, "structured_outputs.json", "is not JSON"),
        ({"structured_outputs": {"grammar": "root ::= other"}}, "structured_outputs.grammar", "not defined"),
        ({"structured_outputs": []}, "structured_outputs", "must be an object"),
        ({"structured_outputs": {"regex": "a"}, "guided_regex": "a"}, "structured_outputs", "choose one"),
        (as_json(SCHEMA) | {"structured_outputs": {"regex": "a"}}, "structured_outputs", "not together"),
        (
            {"tools": TOOLS, "tool_choice": "required", "structured_outputs": {"regex": "a"}},
            "structured_outputs.regex",
            "requires calls",
        ),
        ({"structured_outputs": {"choice": ["\ud800"]}}, "structured_outputs.choice", "choice"),
        (as_json({"type": "string", "format": {}, "maxLength": 3}, strict=True), "response_format", "format"),
        ({"thinking_token_budget": -1}, "thinking_token_budget", "at least 0"),
        ({"thinking_token_budget": True}, "thinking_token_budget", "at least 0"),
        (as_json(PASSED_OVER, strict=True), "response_format", "uniqueItems"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "strict": True, "parameters": PASSED_OVER}}]},
            "tools[0]",
            "uniqueItems",
        ),
    ],
    ids=str,
)
async def test_refused(server: Server, body: Body, param: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        await server.of(body, qwen3())
    assert refused.value.param == param
    assert said in refused.value.message
    assert "/project/cpp" not in refused.value.message
    assert refused.value.status == 400


async def test_a_grammar_without_a_text(server: Server) -> None:
    with pytest.raises(Refused, match="no text"):
        await server.of({"structured_outputs": {"grammar": "root ::= root"}})


@pytest.mark.parametrize("format", [None, qwen3(None)], ids=["no parser", "reasoning alone"])
async def test_calls_that_nothing_reads(server: Server, format: Format | None) -> None:
    with pytest.raises(Refused, match="tool"):
        await server.of({"tools": TOOLS, "tool_choice": "required"}, format)
    assert await server.of({"tools": TOOLS}, format) is None


async def test_what_is_not_enforced_is_told(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = await server.of(as_json(PASSED_OVER), qwen3())
    assert made is not None
    assert made.unenforced == ("uniqueItems",)
    assert "uniqueItems" in caplog.text


SECRET = {"type": "object", "properties": {"tr0ub4dor": {"type": "string", "not": {"const": "tr0ub4dor"}},
    "p": {"type": "string", "pattern": "^(?!tr0ub4dor).*$"}, "q": {"$ref": "https://tr0ub4dor.example"}}}  # fmt: skip


async def test_nothing_of_a_schema_is_logged(
    server: Server, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        await server.of(as_json(SECRET), qwen3())
    assert "not" in caplog.text
    assert "tr0ub4dor" not in caplog.text + capfd.readouterr().err


@pytest.mark.parametrize(
    ("pattern", "taken", "not_taken"),
    [
        ("^(?!tr0ub4dor)[a-z]{3}$", '"abc"', '"ab"'),
        ("^(?=.*[)(\\)])[ab]+(?<!tr0ub4dor(x))$", '"ab"', '"c"'),
        ("^a\\(?b$", '"a(b"', '"a)b"'),
    ],
    ids=str,
)
async def test_what_is_left_of_a_pattern(server: Server, pattern: str, taken: str, not_taken: str) -> None:
    body = as_json({"type": "string", "pattern": pattern})
    assert await server.takes(body, taken)
    assert not await server.takes(body, not_taken)


async def test_a_tool_without_a_grammar_is_refused_only_where_it_matters(server: Server) -> None:
    bad = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?<name>"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": bad}}
    made = await server.of({"tools": [tool]}, qwen3())
    assert made is not None
    assert "the arguments of tools that are not strict" in made.unenforced
    strict = {"type": "function", "function": {"name": "f", "strict": True, "parameters": bad}}
    for body in ({"tools": [tool], "tool_choice": "required"}, {"tools": [strict]}):
        with pytest.raises(Refused) as refused:
            await server.of(body, qwen3())
        assert refused.value.param == "tools"


@pytest.mark.parametrize("seed", range(4))
async def test_a_call_or_the_answer(server: Server, seed: int) -> None:
    body = as_json(SCHEMA) | {"tools": TOOLS}
    text = await server.write(body, qwen3(), seed)
    if not text.lstrip("\n").startswith("<tool_call>"):
        assert isinstance(json.loads(text)["a"], bool)


async def test_a_call_or_another_answer(server: Server) -> None:
    body = {"structured_outputs": {"regex": "[ab]"}, "tools": TOOLS}
    assert await server.takes(body, "a", qwen3())
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "x"}}\n</tool_call>'
    assert await server.takes(body, call, qwen3())
    assert not await server.takes(body, "c", qwen3())


async def test_arguments_of_offered_tools(server: Server) -> None:
    body = {"tools": TOOLS}
    begin = 'Let me see. <tool_call>\n{"name": "get_weather", "arguments": '
    assert await server.takes(body, begin + '{"city": "x"}}\n</tool_call>', qwen3())
    assert not await server.takes(body, begin + '{"town": "x"}}\n</tool_call>', qwen3())
    assert not await server.takes(body, '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>', qwen3())


async def test_arguments_of_tools_that_are_not_strict(server: Server) -> None:
    loose = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": False}}]  # type: ignore[dict-item]
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"town": "x"}}\n</tool_call>'
    assert await server.takes({"tools": loose, "tool_choice": "required"}, text, qwen3())


@pytest.mark.parametrize(
    ("level", "choice", "strict", "bound"),
    [
        ("auto", "auto", None, True),
        ("auto", "auto", False, False),
        ("auto", "required", None, True),
        ("function", "auto", None, False),
        ("function", "auto", True, True),
        ("function", "required", None, True),
        ("parameter", "auto", False, True),
        ("parameter", "required", False, True),
    ],
)
async def test_strict_levels(
    server: Server, level: ToolStrictLevel, choice: str, strict: bool | None, bound: bool
) -> None:
    said = {} if strict is None else {"strict": strict}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER, **said}}]
    body, options = {"tools": tools, "tool_choice": choice}, Options(tool_strict_level=level)
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"town": "x"}}\n</tool_call>'
    assert await server.takes(body, call, qwen3(), options=options) is not bound
    assert not await server.takes(body, call.replace("get_weather", "other"), qwen3(), options=options)


async def test_at_the_level_of_parameters_what_is_not_enforced_is_refused(server: Server) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": PASSED_OVER}}]
    with pytest.raises(Refused, match="uniqueItems"):
        await server.of({"tools": tools}, qwen3(), options=Options(tool_strict_level="parameter"))


@pytest.mark.parametrize(
    ("choice", "more", "calls"),
    [
        ("required", {}, {"get_weather": True, "ping": True, "two": True}),
        ("required", {"parallel_tool_calls": False}, {"get_weather": True, "ping": True, "two": False}),
        ({"type": "function", "function": {"name": "ping"}}, {}, {"get_weather": False, "ping": True, "two": False}),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"name": "ping"}]}},
            {},
            {"get_weather": False, "ping": True, "two": True},
        ),
    ],
    ids=["required", "not parallel", "named", "allowed"],
)
async def test_which_calls(server: Server, choice: object, more: Body, calls: Mapping[str, bool]) -> None:
    body = {"tools": TOOLS, "tool_choice": choice, **more}
    ping = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
    texts = {"get_weather": ping.replace("ping", "get_weather").replace("{}", '{"city": ""}'), "ping": ping,
             "two": f"{ping}\n{ping}"}  # fmt: skip
    assert {name: await server.takes(body, text, qwen3()) for name, text in texts.items()} == calls
    assert not await server.takes(body, "no", qwen3())


async def test_what_has_no_grammar(server: Server) -> None:
    format = select(reasoning_parser=None, tool_parser="pythonic")
    tools = [{"type": "function", "function": {"name": "do-it"}}]
    with pytest.raises(Refused, match="cannot be enforced") as refused:
        await server.of({"tools": tools, "tool_choice": "required"}, format)
    assert refused.value.param == "tool_choice"
    best_effort = Options(inexpressible="best effort")
    assert await server.of({"tools": tools, "tool_choice": "required"}, format, options=best_effort) is None
    assert await server.of({"tools": tools}, format) is None


async def test_a_budget_where_no_marker_ends_thinking(server: Server) -> None:
    format = select(reasoning_parser="openai_gptoss", tool_parser="openai")
    assert format is not None
    with pytest.raises(Refused, match="no marker") as refused:
        await server.of({"thinking_token_budget": 5}, replace(format, messages=Endless()))
    assert refused.value.param == "thinking_token_budget"


@pytest.mark.parametrize("name", [None, "hermes"])
async def test_a_budget_where_nothing_reads_thinking(server: Server, name: str | None) -> None:
    format = select(reasoning_parser=None, tool_parser=name)
    with pytest.raises(Refused, match="reads no thinking"):
        await server.of({"thinking_token_budget": 5}, format)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"enum": list(range(1001))}, "choices in enum"),
        ({"type": "object", "properties": {f"p{index}": {} for index in range(1001)}}, "properties"),
        ({"type": "string", "pattern": "^a{1,5000}b{5001}$"}, "repeats in patterns"),
        ({"description": "x" * 300_000}, "characters"),
    ],
    ids=["enum", "properties", "repeats", "characters"],
)
async def test_limits(server: Server, schema: Body, said: str) -> None:
    with pytest.raises(Refused, match=said):
        await server.of(as_json(schema))


async def test_depth(server: Server) -> None:
    for depth in (200, 100_000):
        deep: dict[str, object] = {}
        for _ in range(depth):
            deep = {"type": "array", "items": deep}
        with pytest.raises(Refused, match=r"within each other|deep"):
            await server.of(as_json(deep))


class Slow(Grammars):
    """Compiles nothing until it is told to."""

    go_on = threading.Event()

    def _compiled(self, tag: Mapping[str, object], param: str) -> Grammar:
        self.go_on.wait(60)
        return super()._compiled(tag, param)


async def test_time(server: Server) -> None:
    grammars = Slow(server.vocabulary, limits=Limits(seconds=0.2))
    asked = (server.of(as_json(SCHEMA), grammars=grammars) for _ in range(3))
    *refused, waited = await asyncio.gather(*asked, return_exceptions=True)
    grammars.go_on.set()
    grammars.close()
    assert all(isinstance(one, Refused) and "takes more than 0.2 s" in one.message for one in refused)
    assert isinstance(waited, ApiError)  # it is not to blame for the two before it
    assert (waited.status, waited.headers) == (503, {"retry-after": "5"})


def test_literals_of_requests_are_not_kept_for_ever(server: Server) -> None:
    for number in range(1000):
        server.vocabulary.holding(b"literal %d" % number)
    assert len(server.vocabulary._holding) < 300


async def test_each_choice_has_its_own(server: Server) -> None:
    made = await server.of(as_json(SCHEMA))
    assert made is not None
    first, second = made.start(), made.start()
    say(first, server.encode('{"a"'))
    assert server.encode("{")[0] in may_come(second, server.vocabulary)
