"""Random demands, written by chance: what comes to its end is as demanded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random

import jsonschema
import pytest
from transformers import PreTrainedTokenizerFast

from tests.backends.local.random_demands import random_schema, random_tools
from streamsieve.backends.local.grammar import Grammars
from streamsieve.backends.local.request_constraint import RequestConstraint, RequestConstraints
from streamsieve.backends.local.vocabulary import Vocabulary
from streamsieve.parsers.format import Format
from streamsieve.parsers.registry import select
from streamsieve.parsers.request import Request
from tests.backends.local.constraint_kit import write

OPEN = "<|im_start|>assistant\n<think>\n"
SCHEMAS, TOOL_SETS = 20, 10


@pytest.fixture(scope="module")
def vocabulary(byte_tokenizer: PreTrainedTokenizerFast) -> Vocabulary:
    tokenizer = byte_tokenizer
    return Vocabulary(tokenizer, size=len(tokenizer) + 9, stops=[tokenizer.eos_token_id, tokenizer.pad_token_id])


@pytest.fixture(scope="module")
def grammars(vocabulary: Vocabulary) -> Iterator[Grammars]:
    made = Grammars(vocabulary)
    yield made
    made.close()


async def constrain(
    grammars: Grammars, tokenizer: PreTrainedTokenizerFast, format: Format | None, body: Mapping[str, object], request: Request
) -> RequestConstraint:
    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    made = await RequestConstraints(grammars, format, encode).of(body, request)
    assert made is not None
    return made


@pytest.mark.parametrize("seed", range(SCHEMAS))
async def test_json_schemas(
    seed: int, grammars: Grammars, vocabulary: Vocabulary, byte_tokenizer: PreTrainedTokenizerFast
) -> None:
    schema = random_schema(Random(seed))
    strict = {"name": "answer", "schema": schema, "strict": True}
    body = {"response_format": {"type": "json_schema", "json_schema": strict}}
    constraint = await constrain(grammars, byte_tokenizer, None, body, Request())
    replies = [write(vocabulary, constraint.start(), 10 * seed + one, taste={ord('"'): 3.0}) for one in range(3)]
    finished = [reply for reply in replies if reply.finish == "stop"]
    assert finished
    for reply in finished:
        jsonschema.validate(json.loads(reply.bytes.decode()), schema, jsonschema.Draft202012Validator)
