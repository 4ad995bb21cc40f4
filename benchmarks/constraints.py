"""Whether constraints hold, on a larger scale than the tests: `python -m benchmarks.constraints --json`.

A tiny model of random weights, over a vocabulary of bytes, answers random JSON schemas and random tool sets at
temperature 1.5, many at once through the engine. Each schema and each tool set is asked for twice: once as it is, and
once of a model that loves white space. What comes to its end must validate (jsonschema), each call that was demanded
must be read as one and its arguments validate, thinking must be free, and nothing may hang. Exit status 1 where it
does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import jsonschema
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from streamsieve.backends.local.engine.jobs import Job
from streamsieve.backends.local.engine.slot_engine import slot_engine
from streamsieve.backends.local.model.loading import LocalModel
from streamsieve.backends.local.sampling.parameters import SamplingParameters
from streamsieve.parsers.format import Format
from streamsieve.parsers.registry import select
from streamsieve.parsers.request import Request
from streamsieve.wire.request.refusal import Refused
from tests.backends.local.constraint_kit import Speaker, Written, byte_level
from tests.backends.local.random_demands import random_schema, random_tools

FORMATS = ("hermes", "qwen3_coder", "llama3_json", "mistral", "glm45", "kimi_k2", "deepseek_v31", "granite", "xlam")
SPECIAL = ("<think>", "</think>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|im_start|>")
OPEN = "<|im_start|>assistant\n<think>\n"
MOST = 400
TEMPERATURE = 1.5
ROWS = 16


@dataclass
class Outcome:
    """How the replies to one kind of demand went; `faults` are those that broke a promise."""

    ended: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Bench(Speaker):
    """The model, its engine and its grammars."""

    def __init__(self) -> None:
        super().__init__(byte_level(SPECIAL), spare=9)
        size, end = self.vocabulary.size, self.tokenizer.eos_token_id
        model = random_model(size, end)
        windows = {"full_attention": None}
        self.engine = slot_engine(
            LocalModel(model, "random", size, 1024, frozenset([end]), windows),
            rows=ROWS,
            cache_bytes=256 << 20,
            queue=10_000,
        )
        self.engine.start()

    async def write(
        self, format: Format | None, body: Mapping[str, object], request: Request, seed: int, bias: Mapping[int, float]
    ) -> Written:
        """One reply."""
        made = await self.constraint(body, format, request)
        job = Job(
            prompt=self.encode(f"{OPEN}{seed}"),
            sampling=SamplingParameters(temperature=TEMPERATURE, seed=seed, logit_bias=bias),
            max_tokens=MOST,
            stop_token_ids=self.vocabulary.stops,
            constraint=made.start(),
        )
        written = Written(self.vocabulary)
        async for tokens in self.engine.generate(job):
            written.tokens += [token.id for token in tokens]
        written.finish = str(job.finish_reason)
        return written

    def tastes(self) -> Sequence[Mapping[int, float]]:
        """What the model likes: the end of strings and of thinking, so that replies end; and white space as well."""
        quote, ends_thinking = self.encode('"</think>')
        ending = {quote: 3.0, ends_thinking: 6.0}
        return ending, ending | dict.fromkeys(self.encode(" \n\t\r"), 8.0)


def random_model(size: int, end: int) -> Qwen3ForCausalLM:
    """A Qwen3 that says nothing."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=1024, eos_token_id=end, pad_token_id=end,
    )  # fmt: skip
    return Qwen3ForCausalLM(config).eval()


async def schemas(bench: Bench, count: int, seed: int) -> Outcome:
    """Replies to JSON schemas; the reply has no thinking."""
    outcome = Outcome()

    async def one(number: int, bias: Mapping[int, float]) -> None:
        schema = random_schema(Random(number))
        body = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema, "strict": True}}}
        reply = await bench.write(None, body, Request(), number, bias)
        outcome.ended[reply.finish] += 1
        if reply.finish == "stop":
            try:
                jsonschema.validate(json.loads(reply.bytes.decode()), schema, jsonschema.Draft202012Validator)
            except (ValueError, jsonschema.ValidationError) as error:
                outcome.faults.append(f"schema {number}: {str(error).splitlines()[0]}")

    numbers = range(seed, seed + count)
    await asyncio.gather(*(one(number, bias) for number in numbers for bias in bench.tastes()))
    return outcome


async def tool_sets(bench: Bench, count: int, seed: int) -> Outcome:
    """Replies that have to be calls, after thinking, in one format after the other."""
    outcome = Outcome()

    async def one(number: int, bias: Mapping[int, float]) -> None:
        tools = random_tools(Random(number))
        body = {"tools": tools, "tool_choice": "required"}
        format = select(tool_parser=FORMATS[number % len(FORMATS)], reasoning_parser="qwen3")
        assert format is not None
        request = Request.from_body(body, prompt_tail=OPEN)
        try:
            reply = await bench.write(format, body, request, number, bias)
        except Refused as error:
            outcome.faults.append(f"tools {number}, {format.name}: {error.message}")
            return
        outcome.ended[reply.finish] += 1
        if reply.finish == "stop" and (fault := call_fault(reply, format, request)):
            outcome.faults.append(f"tools {number}, {format.name}: {fault}")

    numbers = range(seed, seed + count)
    await asyncio.gather(*(one(number, bias) for number in numbers for bias in bench.tastes()))
    return outcome


def call_fault(reply: Written, format: Format, request: Request) -> str | None:
    """What is wrong with a reply that had to be calls."""
    message = reply.message(format, request)
    if not message.tool_calls or message.content is not None:
        return "no call, or more than calls"
    for call in message.tool_calls:
        try:
            jsonschema.validate(
                json.loads(call.arguments), dict(request.tools[call.name]), jsonschema.Draft202012Validator
            )
        except (ValueError, KeyError, jsonschema.ValidationError) as error:
            return f"{call.name}: {str(error).splitlines()[0]}"
    return None


async def run(schema_count: int, tool_count: int, seed: int) -> dict[str, Outcome]:
    """Both kinds."""
    bench = Bench()
    try:
        return {
            "schemas": await schemas(bench, schema_count, seed),
            "tool sets": await tool_sets(bench, tool_count, seed),
        }
    finally:
        bench.engine.stop()
        bench.grammars.close()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--tools", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    outcomes = asyncio.run(run(options.schemas, options.tools, options.seed))
    report = {name: {"ended": dict(one.ended), "faults": one.faults} for name, one in outcomes.items()}
    seconds = round(time.monotonic() - began, 1)
    if options.json:
        print(json.dumps({"seconds": seconds, **report}, indent=2))
    else:
        for name, one in report.items():
            print(f"{name}: {one['ended']}; broken promises: {len(one['faults'])}")
            for fault in one["faults"]:
                print(f"  {fault}")
        print(f"{seconds} s")
    return 1 if any(one.faults for one in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
