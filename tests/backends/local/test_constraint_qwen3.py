"""Constraints over Qwen3's own vocabulary of 151,669 tokens, in a model of 151,936."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonschema
import pytest
from transformers import AutoTokenizer

from streamsieve.parsers.registry import select
from streamsieve.parsers.request import Request
from tests.backends.local.constraint_kit import Speaker, Written, may_come, write

SIZE = 151_936
TURN = "<|im_start|>assistant\n"
SWITCHED_OFF = TURN + "<think>\n\n</think>\n\n"
QWEN3 = select(tool_parser="hermes", reasoning_parser="qwen3")
assert QWEN3 is not None

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER, "strict": True}}]
CALLED = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
ANSWER = {"response_format": {"type": "json_schema", "json_schema": {"schema": WEATHER, "strict": True}}}


class Qwen3(Speaker):
    """The vocabulary, and what a reply likes to hold."""

    def __init__(self, folder: Path) -> None:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        stops = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
        super().__init__(tokenizer, stops, spare=SIZE - len(tokenizer))
        names = ("<think>", "</think>", "<tool_call>")
        self.think, self.end_think, self.call = self.tokenizer.convert_tokens_to_ids(names)
        self.unused = dict.fromkeys(range(len(self.tokenizer), SIZE), -1000.0)

    async def write(
        self, body: Mapping[str, object], tail: str, seed: int, liking: Mapping[int, float] | None = None
    ) -> Written:
        """A reply by chance."""
        made = await self.constraint(body, QWEN3, Request.from_body(body, prompt_tail=tail))
        return write(self.vocabulary, made.start(), seed, most=200, taste={**self.unused, **(liking or {})})


@pytest.fixture(scope="module")
def qwen3(qwen3_tokenizer: Path) -> Iterator[Qwen3]:
    made = Qwen3(qwen3_tokenizer)
    yield made
    made.grammars.close()


@pytest.mark.parametrize("seed", range(3))
async def test_thinking_and_a_call(qwen3: Qwen3, seed: int) -> None:
    reply = await qwen3.write(CALLED, TURN, seed, {qwen3.end_think: 15.0, qwen3.think: -1000.0})
    assert reply.finish == "stop"
    end = reply.tokens.index(qwen3.end_think)
    assert reply.tokens[end + 1] == qwen3.call or qwen3.tokenizer.decode(reply.tokens[end + 1]) in ("\n", "\n\n")
    assert reply.tokens.count(qwen3.call) == 1
    message = reply.message(QWEN3, Request.from_body(CALLED, prompt_tail=TURN))
    assert (message.content, message.finish_reason, message.repairs) == (None, "tool_calls", [])
    jsonschema.validate(json.loads(message.tool_calls[0].arguments), WEATHER)


@pytest.mark.parametrize("seed", range(3))
async def test_thinking_that_a_call_ends(qwen3: Qwen3, seed: int) -> None:
    liking = {qwen3.call: 12.0, qwen3.end_think: -1000.0}
    reply = await qwen3.write(CALLED, TURN + "<think>\n", seed, liking)
    message = reply.message(QWEN3, Request.from_body(CALLED, prompt_tail=TURN + "<think>\n"))
    assert reply.finish == "stop"
    assert reply.tokens.count(qwen3.call) == 1
    jsonschema.validate(json.loads(message.tool_calls[0].arguments), WEATHER)


@pytest.mark.parametrize("seed", range(3))
async def test_thinking_switched_off_and_a_schema(qwen3: Qwen3, seed: int) -> None:
    body = ANSWER | {"chat_template_kwargs": {"enable_thinking": False}}
    reply = await qwen3.write(body, SWITCHED_OFF, seed)
    message = reply.message(QWEN3, Request.from_body(body, prompt_tail=SWITCHED_OFF))
    assert (reply.finish, message.reasoning) == ("stop", None)
    assert message.content is not None
    jsonschema.validate(json.loads(message.content), WEATHER)


async def test_the_budget(qwen3: Qwen3) -> None:
    body = CALLED | {"thinking_token_budget": 7}
    never = {qwen3.end_think: -1000.0, qwen3.call: -1000.0, qwen3.think: -1000.0}
    reply = await qwen3.write(body, TURN + "<think>\n", 0, never)
    assert reply.tokens.index(qwen3.end_think) in range(7, 11)  # it does not end within a character
    assert reply.finish == "stop"
    assert reply.message(QWEN3, Request.from_body(body, prompt_tail=TURN)).tool_calls


async def test_no_special_token_in_a_string(qwen3: Qwen3) -> None:
    liking = dict.fromkeys(qwen3.vocabulary.special.values(), 50.0)
    reply = await qwen3.write(ANSWER, SWITCHED_OFF, 0, liking)
    assert not set(reply.tokens) & set(qwen3.vocabulary.special.values()) - set(qwen3.stops)


async def test_nothing_that_the_tokenizer_does_not_have(qwen3: Qwen3) -> None:
    body = {"structured_outputs": {"regex": ".*"}}
    made = await qwen3.constraint(body, None, Request())
    assert max(may_come(made.start(), qwen3.vocabulary)) < len(qwen3.tokenizer)
