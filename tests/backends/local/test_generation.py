"""Tokens as text: whole characters, stop strings, and how a choice ends. The engine is a list of steps."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from streamsieve.backends.local.constraints.vocabulary import Vocabulary
from streamsieve.backends.local.engine.jobs import EngineFailed, FinishReason, Job
from streamsieve.backends.local.sampling.parameters import SamplingParameters
from streamsieve.backends.local.sampling.token import Token
from streamsieve.backends.local.server.detokenizer import Detokenizer
from streamsieve.backends.local.server.generation import LEAST_LOGPROB, Ending, Generation
from streamsieve.backends.local.server.stop_strings import StopStrings
from streamsieve.backends.local.server.tokenizer import Tokenizer
from streamsieve.backends.reply import Piece, joined


class Writer:
    """Writes a text token by token, as an engine would, and notes when it is closed."""

    def __init__(self, tokenizer: Tokenizer, text: str, *, step: int = 1, finish: FinishReason = "stop") -> None:
        self.tokens = [Token(id, -0.25, [(id, -0.25)]) for id in tokenizer.encode(text)]
        self.step = step
        self.finish: FinishReason = finish
        self.given = 0

    async def run(self, job: Job) -> AsyncGenerator[Sequence[Token], None]:
        for start in range(0, len(self.tokens), self.step):
            step = self.tokens[start : start + self.step]
            self.given += len(step)
            if self.given == len(self.tokens):
                job.finish_reason = self.finish
            yield step


@pytest.fixture(scope="module")
def tokenizer(byte_tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    return Tokenizer(byte_tokenizer)


EOS = "<|im_end|>"


async def pieces(
    tokenizer: Tokenizer, text: str, *, step: int = 1, finish: FinishReason = "stop", logprobs: int | None = None,
    **ending: Any,
) -> tuple[list[Piece], Writer]:  # fmt: skip
    """What a generation makes of `text`, and the engine that wrote it."""
    writer = Writer(tokenizer, text, step=step, finish=finish)
    eos = frozenset(tokenizer.encode(EOS))
    ends = Ending(**{"eos_token_ids": eos, **ending})
    job = Job(
        prompt=[1],
        sampling=SamplingParameters(logprobs=logprobs),
        max_tokens=1000,
        stop_token_ids=ends.eos_token_ids | ends.stop_token_ids,
    )
    texts = Vocabulary(tokenizer.huggingface, size=len(tokenizer), stops=eos).texts
    generation = Generation(run=writer.run, job=job, detokenizer=Detokenizer(tokenizer), ending=ends, texts=texts)
    return [piece async for piece in generation.pieces()], writer


@pytest.mark.parametrize("step", [1, 2, 7, 100])
@pytest.mark.parametrize("text", ["Hello", "é😀 日本<think>x</think>", "", "\u200d\n"])
async def test_all_text_comes_out_in_whole_characters(tokenizer: Tokenizer, text: str, step: int) -> None:
    made, _ = await pieces(tokenizer, text + EOS, step=step)
    assert "".join(piece.text for piece in made) == text
    assert not any("\ufffd" in piece.text for piece in made)
    assert joined(made).token_ids == tokenizer.encode(text + EOS)
    assert [piece.finish_reason for piece in made] == [None] * (len(made) - 1) + ["stop"]
    assert made[-1].stop_reason is None


async def test_ids_go_with_their_text(tokenizer: Tokenizer) -> None:
    made, _ = await pieces(tokenizer, "a😀b" + EOS)
    assert [(piece.text, tokenizer.decode(piece.token_ids or ())) for piece in made] == [
        ("a", "a"), ("😀", "😀"), ("b", "b"), ("", EOS),
    ]  # fmt: skip


async def test_half_a_character_at_the_end_is_dropped(tokenizer: Tokenizer) -> None:
    writer = tokenizer.encode("a😀")[:-1]
    text = tokenizer.decode(writer[:1])
    made, _ = await pieces(tokenizer, "a", finish="length")
    assert joined(made).text == text
    assert joined(made).finish_reason == "length"


STOPS = [
    ("one two three", ["two"], "one ", "two"),
    ("one two three", ["three", "two"], "one ", "two"),
    ("one two three", ["one two", "one"], "", "one"),
    ("one two three", ["o three", "two"], "one ", "two"),
    ("aaab", ["aab"], "a", "aab"),
    ("one\n\ntwo", ["\n\n"], "one", "\n\n"),
    ("😀é!", ["é"], "😀", "é"),
    ("one</think>x", ["</think>"], "one", "</think>"),
    ("one two", ["never"], "one two", None),
    ("one tw", ["two"], "one tw", None),
    ("two", ["two"], "", "two"),
]


@pytest.mark.parametrize("step", [1, 3, 100])
@pytest.mark.parametrize(("text", "stops", "left", "stop"), STOPS)
async def test_stop_strings(
    tokenizer: Tokenizer, text: str, stops: list[str], left: str, stop: str | None, step: int
) -> None:
    made, writer = await pieces(tokenizer, text + EOS, step=step, strings=stops)
    assert joined(made).text == left
    assert (joined(made).finish_reason, joined(made).stop_reason) == ("stop", stop)
    if stop is not None and step == 1:
        written = tokenizer.decode([token.id for token in writer.tokens[: writer.given]])
        assert written.endswith(stop), "nothing is generated beyond the stop string"


@pytest.mark.parametrize(("text", "stops", "left", "stop"), STOPS)
async def test_what_ended_it_stays_where_that_is_wanted(
    tokenizer: Tokenizer, text: str, stops: list[str], left: str, stop: str | None
) -> None:
    made, _ = await pieces(tokenizer, text + EOS, strings=stops, include=True)
    assert joined(made).text == left + (stop if stop is not None else EOS)


async def test_an_end_token_that_is_read_stays(tokenizer: Tokenizer) -> None:
    made, _ = await pieces(tokenizer, "a b" + EOS, strings=[" b"], kept=frozenset(tokenizer.encode(EOS)))
    assert joined(made).text == "a"
    made, _ = await pieces(tokenizer, "a b" + EOS, kept=frozenset(tokenizer.encode(EOS)))
    assert joined(made).text == "a b" + EOS


async def test_text_is_held_only_while_it_may_be_a_stop_string(tokenizer: Tokenizer) -> None:
    made, _ = await pieces(tokenizer, "a b-- c" + EOS, strings=["---"])
    assert [piece.text for piece in made] == ["a", " ", "b", "-- ", "c", ""]


async def test_stop_strings_count_once_there_are_enough_tokens(tokenizer: Tokenizer) -> None:
    made, _ = await pieces(tokenizer, "xx.yy.zz" + EOS, strings=["."], min_tokens=4)
    assert joined(made).text == "xx.yy"


async def test_a_stop_token_of_the_request_is_told(tokenizer: Tokenizer) -> None:
    [stop] = tokenizer.encode("</think>")
    made, _ = await pieces(tokenizer, "a</think>", stop_token_ids=frozenset([stop]))
    assert (joined(made).text, joined(made).stop_reason) == ("a", stop)


@pytest.mark.parametrize("finish", ["error", "cancelled"])
async def test_a_job_that_did_not_end_by_itself_is_an_error(tokenizer: Tokenizer, finish: FinishReason) -> None:
    with pytest.raises(EngineFailed):
        await pieces(tokenizer, "abc", finish=finish)


async def test_logprobs_go_with_their_text(tokenizer: Tokenizer) -> None:
    made, _ = await pieces(tokenizer, "😀b" + EOS, logprobs=1)
    assert [len(piece.logprobs or ()) for piece in made] == [4, 1, 1]
    assert b"".join(one.bytes for piece in made for one in piece.logprobs or ()).decode() == "😀b" + EOS
    assert joined(await quiet(tokenizer)).logprobs is None


async def quiet(tokenizer: Tokenizer) -> list[Piece]:
    return (await pieces(tokenizer, "b" + EOS))[0]


async def test_a_token_that_cannot_come_has_a_number_that_json_knows(tokenizer: Tokenizer) -> None:
    writer = Writer(tokenizer, "b" + EOS)
    writer.tokens[0] = Token(writer.tokens[0].id, float("-inf"), [])
    job = Job(
        prompt=[1],
        sampling=SamplingParameters(logprobs=0),
        max_tokens=9,
        stop_token_ids=frozenset(tokenizer.encode(EOS)),
    )
    ending = Ending(eos_token_ids=job.stop_token_ids)
    generation = Generation(
        run=writer.run, job=job, detokenizer=Detokenizer(tokenizer), ending=ending, texts=[b""] * len(tokenizer)
    )
    first = await anext(generation.pieces())
    assert [one.logprob for one in first.logprobs or ()] == [LEAST_LOGPROB]


@pytest.mark.parametrize(("text", "safe"), [("", 0), ("ab", 2), ("ab<", 2), ("ab<s", 2), ("ab<x", 4), ("<s<s", 2)])
def test_what_may_begin_a_stop_string_is_not_safe(text: str, safe: int) -> None:
    assert StopStrings(["<stop>", "<st"]).safe(text) == safe
