"""Random demands, written by chance: what comes to its end is as demanded.

`python -m benchmarks.constraints` does the same with more of them and a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random

import jsonschema
import pytest
from transformers import PreTrainedTokenizerFast

from streamsieve.backends.local.constraints.request_constraint import RequestConstraint
from streamsieve.parsers.registry import select
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message
from tests.backends.local.constraint_kit import Speaker, Written, write
from tests.backends.local.random_demands import random_schema, random_tools

OPEN = "<|im_start|>assistant\n<think>\n"
SCHEMAS, TOOL_SETS = 25, 5
FORMATS = (
    "hermes",
    "qwen3_coder",
    "llama3_json",
    "mistral",
    "glm45",
    "kimi_k2",
    "deepseek_v31",
    "granite",
    "xlam",
    "openai",
)


class Writer(Speaker):
    """A vocabulary of bytes, and a hand that is led by chance alone."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        super().__init__(tokenizer, [tokenizer.eos_token_id, tokenizer.pad_token_id], spare=9)
        self.quote, self.ends_thinking, self.opens_call = self.encode('"</think><tool_call>')
        self.blanks = self.encode(" \n\t\r")

    def write(self, constraint: RequestConstraint, seed: int, liking: Mapping[int, float] | None = None) -> Written:
        """A reply that closes its strings and its thinking a little sooner than pure chance would."""
        taste = {self.quote: 3.0, self.ends_thinking: 5.0, **(liking or {})}
        return write(self.vocabulary, constraint.start(), seed, taste=taste)


@pytest.fixture(scope="module")
def writer(byte_tokenizer: PreTrainedTokenizerFast) -> Iterator[Writer]:
    made = Writer(byte_tokenizer)
    yield made
    made.grammars.close()


@pytest.mark.parametrize("seed", range(SCHEMAS))
async def test_json_schemas(seed: int, writer: Writer) -> None:
    schema = random_schema(Random(seed))
    strict = {"name": "answer", "schema": schema, "strict": True}
    body = {"response_format": {"type": "json_schema", "json_schema": strict}}
    constraint = await writer.constraint(body, None, Request())
    replies = [writer.write(constraint, 10 * seed + one) for one in range(3)]
    replies.append(writer.write(constraint, seed, dict.fromkeys(writer.blanks, 8.0)))
    finished = [reply for reply in replies if reply.finish == "stop"]
    assert finished
    for reply in finished:
        jsonschema.validate(json.loads(reply.bytes.decode()), schema, jsonschema.Draft202012Validator)


@pytest.mark.parametrize("seed", range(TOOL_SETS))
@pytest.mark.parametrize("name", FORMATS)
async def test_tool_sets(name: str, seed: int, writer: Writer) -> None:
    tools = random_tools(Random(seed))
    body = {"tools": tools, "tool_choice": "required"}
    format = select(tool_parser=name, reasoning_parser="openai_gptoss" if name == "openai" else "qwen3")
    assert format is not None
    tail = "<|start|>assistant" if name == "openai" else OPEN
    request = Request.from_body(body, prompt_tail=tail)
    constraint = await writer.constraint(body, format, request)
    for one in range(2):
        reply = writer.write(constraint, 10 * seed + one, dict.fromkeys(writer.blanks, 8.0) if one else None)
        if reply.finish == "stop":
            check_calls(reply.message(format, request), tools)


@pytest.mark.parametrize("seed", range(6))
async def test_thinking_and_then_what_is_demanded(seed: int, writer: Writer) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
              "additionalProperties": False}  # fmt: skip
    body = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    format = select(tool_parser="hermes", reasoning_parser="qwen3")
    assert format is not None
    request = Request.from_body(body, prompt_tail=OPEN)
    reply = writer.write(await writer.constraint(body, format, request), seed)
    message = reply.message(format, request)
    if reply.finish == "length":
        assert message.content is None
        return
    end = reply.tokens.index(writer.ends_thinking)
    assert message.content is not None
    jsonschema.validate(json.loads(message.content), schema)
    told = writer.vocabulary.stops
    assert not told & set(reply.tokens[:end])
    assert message.reasoning == text_of(writer, reply.tokens[:end]).strip() or not message.reasoning


@pytest.mark.parametrize("seed", range(6))
async def test_tools_that_are_only_offered(seed: int, writer: Writer) -> None:
    tools = random_tools(Random(seed))
    body = {"tools": tools}
    format = select(tool_parser="hermes", reasoning_parser=None)
    assert format is not None
    request = Request.from_body(body)
    reply = writer.write(await writer.constraint(body, format, request), seed, {writer.opens_call: 6.0})
    message = reply.message(format, request)
    if reply.finish == "length":
        message.tool_calls = message.tool_calls[:-1]
    check_arguments(message, tools)
    assert not [repair for repair in message.repairs if repair.rule not in ("cut_call", "not_a_call")]


def check_calls(message: Message, tools: list[dict[str, object]]) -> None:
    assert message.tool_calls
    assert message.content is None
    assert {repair.rule for repair in message.repairs} <= {"unclosed_call"}  # what stops generation is no text
    check_arguments(message, tools)


def check_arguments(message: Message, tools: list[dict[str, object]]) -> None:
    functions = [tool["function"] for tool in tools]
    schemas = {one["name"]: one.get("parameters", {}) for one in functions if isinstance(one, dict)}
    for call in message.tool_calls:
        jsonschema.validate(json.loads(call.arguments), schemas[call.name], jsonschema.Draft202012Validator)


def text_of(writer: Writer, tokens: list[int]) -> str:
    return b"".join(writer.vocabulary.texts[token] for token in tokens).decode("utf-8", "replace")
