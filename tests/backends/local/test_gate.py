"""Where thinking ends and the grammar begins, to the character."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pytest

from streamsieve.backends.local.constraints.constraint import Constraint
from streamsieve.backends.local.constraints.request_constraint import Options
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch
from streamsieve.parsers.registry import select
from streamsieve.parsers.request import Request
from tests.backends.local.constraint_kit import Speaker, byte_level, may_come, say, write

TURN = "<|im_start|>assistant\n"
OPEN = TURN + "<think>\n"
CLOSED = TURN + "<think>\n\n</think>\n\n"
MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
PIECES = ("</th", "ink", "think", ">{", ">x", ">\n\n", "</think>{", "</think>x", "a</think>", "a</think>x", "<tool",
          "_call>", "<tool_call>\n", "<tool_call>x", "<think>so", "{}", "é")  # fmt: skip
OBJECT = {"response_format": {"type": "json_object"}}
PING = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}]
CALLED = {"tools": PING, "tool_choice": "required"}
MAY_CALL = {"tools": PING}


def thinking(starts: Literal["open", "unless answered", "marked"]) -> Format:
    """Hermes calls, and thinking that starts so."""
    hermes = select(tool_parser="hermes", reasoning_parser=None)
    assert hermes is not None
    span = ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        starts=starts,
        enders=("<answer>",) if starts == "unless answered" else (),
        ends_at_call=starts != "unless answered",
        switch=Switch(keys=("enable_thinking",)),
        turn_heads=("<|im_start|>",),
    )
    return replace(hermes, reasoning=span)


QWEN3, MARKED, UNLESS_ANSWERED = thinking("open"), thinking("marked"), thinking("unless answered")


class Words(Speaker):
    """The tokens that stand where a reply has its border."""

    @property
    def end(self) -> int:
        """The token that ends a reply."""
        return self.stops[0]

    def piece(self, text: str) -> int:
        """The one token of this text."""
        return next(number for number, one in enumerate(self.vocabulary.texts) if one == text.encode())

    async def bound(
        self, body: Mapping[str, object], tail: str, *, format: Format = QWEN3, options: Options | None = None
    ) -> Constraint:
        """What binds a reply of this format."""
        request = Request.from_body(body, prompt_tail=tail)
        return (await self.constraint(body, format, request, options)).start()


@pytest.fixture(scope="module")
def spelled() -> Iterator[Words]:
    words = Words(byte_level((), PIECES))
    yield words
    words.grammars.close()


@pytest.fixture(scope="module")
def marked() -> Iterator[Words]:
    words = Words(byte_level(MARKERS, PIECES))
    yield words
    words.grammars.close()


@pytest.fixture(params=["spelled", "marked"])
def words(request: pytest.FixtureRequest) -> Words:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Words)
    return found


def allows(constraint: Constraint, words: Words, pieces: Sequence[str]) -> dict[str, bool]:
    tokens = may_come(constraint, words.vocabulary)
    return {piece: words.piece(piece) in tokens for piece in pieces}


async def test_thinking_is_free(words: Words) -> None:
    constraint = await words.bound(CALLED, OPEN)
    for letter in words.encode("any é text, {} or <tool, even </thin"):
        assert may_come(constraint, words.vocabulary) >= set(range(256)), "a byte is barred"
        constraint.accept(letter)


@pytest.mark.parametrize(("body", "may_end"), [(CALLED, False), (OBJECT, False), (MAY_CALL, True)])
async def test_no_end_before_what_is_demanded(words: Words, body: Mapping[str, object], may_end: bool) -> None:
    constraint = await words.bound(body, OPEN)
    say(constraint, words.encode("hm"))
    assert (words.end in may_come(constraint, words.vocabulary)) is may_end


async def test_the_grammar_binds_from_the_end_of_thinking(words: Words) -> None:
    constraint = await words.bound(OBJECT, OPEN)
    say(constraint, words.encode("hm</think>"))
    assert may_come(constraint, words.vocabulary) == {words.piece(one) for one in ("{", "{}", "\n")}
    say(constraint, words.encode("{}"))
    assert constraint.done


async def test_a_token_across_the_border(spelled: Words) -> None:
    constraint = await spelled.bound(OBJECT, OPEN)
    whole = allows(constraint, spelled, ["</think>{", "</think>x", "a</think>", "a</think>x", ">x"])
    assert whole == {"</think>{": True, "</think>x": False, "a</think>": True, "a</think>x": False, ">x": True}
    say(constraint, [spelled.piece("</th"), spelled.piece("ink")])
    assert allows(constraint, spelled, [">", ">{", ">x", ">\n\n"]) == {
        ">": True,
        ">{": True,
        ">x": False,
        ">\n\n": True,
    }
    say(constraint, [spelled.piece(">{")])
    assert allows(constraint, spelled, ["}", "x", "{"]) == {"}": True, "x": False, "{": False}


async def test_a_marker_that_is_a_token_is_not_spelled(marked: Words) -> None:
    constraint = await marked.bound(OBJECT, OPEN)
    say(constraint, [marked.piece("</th"), marked.piece("ink"), marked.piece(">x")])
    assert may_come(constraint, marked.vocabulary) >= set(range(256))


async def test_an_opener_ends_thinking_and_is_not_demanded_twice(words: Words) -> None:
    constraint = await words.bound(CALLED, OPEN)
    say(constraint, words.encode("now <tool_call>"))
    assert may_come(constraint, words.vocabulary) <= {words.piece(one) for one in ("\n", " ", "{", "\t", "\r")}
    say(constraint, words.encode('\n{"name": "ping", "arguments": {}}\n</tool_call>'))
    assert may_come(constraint, words.vocabulary) >= {words.end}


async def test_a_token_across_an_opener(spelled: Words) -> None:
    constraint = await spelled.bound(CALLED, OPEN)
    assert allows(constraint, spelled, ["<tool_call>\n", "<tool_call>x"]) == {
        "<tool_call>\n": True,
        "<tool_call>x": False,
    }


async def test_text_across_the_border_where_calls_begin_with_a_token() -> None:
    words = Words(byte_level(("<tool_call>", "</tool_call>"), PIECES))
    constraint = await words.bound(MAY_CALL, OPEN)
    assert allows(constraint, words, ["</think>x", "</think>{"]) == {"</think>x": True, "</think>{": True}
    say(constraint, [words.piece("</think>x")])
    assert may_come(constraint, words.vocabulary) >= set(range(256))
    say(constraint, words.encode("<tool_call>"))
    assert words.piece("x") not in may_come(constraint, words.vocabulary)
    words.grammars.close()


async def test_an_answer_that_begins_as_thinking_does(spelled: Words) -> None:
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "<thin>"}}
    constraint = await spelled.bound({"response_format": tag}, TURN, format=MARKED)
    say(constraint, spelled.encode("<think>hm</think><thin>"))
    assert constraint.done


async def test_an_opener_that_the_grammar_does_not_take(words: Words) -> None:
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "yes"}}
    constraint = await words.bound(MAY_CALL | {"response_format": tag}, OPEN)
    say(constraint, words.encode("<tool_call>")[:-1])
    last = words.encode("<tool_call>")[-1]
    assert last not in may_come(constraint, words.vocabulary)


@pytest.mark.parametrize("thinks", [True, False])
async def test_a_reply_that_may_think_or_not(words: Words, thinks: bool) -> None:
    constraint = await words.bound(OBJECT, TURN, format=MARKED)
    opener = words.encode("<think>")
    assert may_come(constraint, words.vocabulary) >= {opener[0], words.piece("{")}
    assert words.piece("x") not in may_come(constraint, words.vocabulary)
    if thinks:
        say(constraint, opener)
        assert may_come(constraint, words.vocabulary) >= set(range(256))
        say(constraint, words.encode("hm</think>"))
    say(constraint, words.encode("{"))
    assert words.piece("x") not in may_come(constraint, words.vocabulary)


async def test_an_opener_of_thinking_that_is_begun_is_gone_on_with(spelled: Words) -> None:
    constraint = await spelled.bound(OBJECT, TURN, format=MARKED)
    say(constraint, spelled.encode("<thin"))
    assert may_come(constraint, spelled.vocabulary) == {spelled.piece("k")}
    say(constraint, spelled.encode("k"))
    assert may_come(constraint, spelled.vocabulary) == {spelled.piece(one) for one in (">", ">{", ">x", ">\n\n")}


async def test_an_opener_of_thinking_that_is_a_token_is_not_spelled(marked: Words) -> None:
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "<thin>"}}
    constraint = await marked.bound({"response_format": tag}, TURN, format=MARKED)
    assert may_come(constraint, marked.vocabulary) == {marked.piece("<"), marked.piece("<think>")}
    say(constraint, marked.encode("<thin"))
    assert may_come(constraint, marked.vocabulary) == {marked.piece(">")}
    say(constraint, marked.encode(">"))
    assert constraint.done


@pytest.mark.parametrize(
    ("body", "tail", "options"),
    [
        (OBJECT, CLOSED, Options()),
        (OBJECT | {"chat_template_kwargs": {"enable_thinking": False}}, TURN, Options()),
        (OBJECT | {"include_reasoning": False}, TURN, Options()),
        (OBJECT, OPEN, Options(enable_in_reasoning=True)),
    ],
    ids=["the prompt has closed it", "switched off", "not included", "bound too"],
)
async def test_bound_from_the_first_token(
    words: Words, body: Mapping[str, object], tail: str, options: Options
) -> None:
    constraint = await words.bound(body, tail, format=MARKED, options=options)
    assert constraint.forced() is None
    assert may_come(constraint, words.vocabulary) == {words.piece(one) for one in ("{", "{}", "\n")}


async def test_thinking_that_is_not_included_is_closed_at_once(words: Words) -> None:
    constraint = await words.bound(OBJECT | {"include_reasoning": False}, OPEN)
    closing = words.encode("</think>")
    for token in closing:
        assert constraint.forced() == token
        constraint.accept(token)
    assert constraint.forced() is None
    assert words.piece("x") not in may_come(constraint, words.vocabulary)


@pytest.mark.parametrize("body", [CALLED, {}], ids=["with a grammar", "alone"])
async def test_the_budget(words: Words, body: Mapping[str, object]) -> None:
    constraint = await words.bound({**body, "thinking_token_budget": 3}, OPEN)
    for token in words.encode("a</"):
        assert constraint.forced() is None
        constraint.accept(token)
    for token in words.encode("</think>"):
        assert constraint.forced() == token
        constraint.accept(token)
    assert constraint.forced() is None


async def test_the_budget_does_not_cut_a_character(words: Words) -> None:
    constraint = await words.bound({"thinking_token_budget": 2}, OPEN)
    first, second = words.encode("é")
    say(constraint, [*words.encode("a"), first])
    assert constraint.forced() is None
    say(constraint, [second])
    assert constraint.forced() == words.encode("</think>")[0]


async def test_the_budget_does_not_wait_for_a_character_that_never_ends(words: Words) -> None:
    constraint = await words.bound({"thinking_token_budget": 2}, OPEN)
    first, _ = words.encode("é")
    say(constraint, words.encode("a"))
    for _ in range(4):
        assert constraint.forced() is None
        say(constraint, [first])
    assert constraint.forced() == words.encode("</think>")[0]


@pytest.mark.parametrize("format", [QWEN3, MARKED], ids=["may", "must"])
async def test_the_budget_of_thinking_that_the_reply_opens(words: Words, format: Format) -> None:
    constraint = await words.bound({"thinking_token_budget": 2}, TURN, format=format)
    say(constraint, words.encode("<think>ab"))
    assert constraint.forced() == words.encode("</think>")[0]


HARMONY_MARKERS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|constrain|>", "<|call|>", "<|return|>")


@pytest.fixture(scope="module", params=[(), HARMONY_MARKERS], ids=["spelled", "marked"])
def channels(request: pytest.FixtureRequest) -> Iterator[Words]:
    words = Words(byte_level(request.param))
    yield words
    words.grammars.close()


@pytest.mark.parametrize("body", [CALLED, {}], ids=["with a grammar", "alone"])
async def test_the_budget_in_messages(channels: Words, body: Mapping[str, object]) -> None:
    format = select(reasoning_parser="openai_gptoss", tool_parser="openai")
    assert format is not None
    tail = "<|start|>assistant"
    constraint = await channels.bound({**body, "thinking_token_budget": 3}, tail, format=format)
    say(constraint, channels.encode("<|channel|>analysis<|message|>abc"))
    for token in channels.encode("<|end|>"):
        assert constraint.forced() == token
        constraint.accept(token)
    assert constraint.forced() is None
    say(constraint, channels.encode("<|start|>assistant<|channel|>commentary to=functions.ping"))
    if body:
        say(constraint, channels.encode(" <|constrain|>json<|message|>{}"))
        assert channels.end in may_come(constraint, channels.vocabulary)


async def test_no_budget_forbids_thinking(words: Words) -> None:
    constraint = await words.bound(OBJECT | {"thinking_token_budget": 0}, TURN, format=MARKED)
    assert words.encode("<think>")[0] not in may_come(constraint, words.vocabulary)


async def test_a_model_that_never_ends_thinking(marked: Words) -> None:
    never = {marked.piece(marker): -1000.0 for marker in ("</think>", "<tool_call>")}
    request = Request.from_body(CALLED, prompt_tail=OPEN)
    written = write(marked.vocabulary, await marked.bound(CALLED, OPEN), 1, most=100, taste=never)
    format = select(reasoning_parser="qwen3", tool_parser="hermes")
    assert format is not None
    message = written.message(format, request)
    assert (written.finish, message.content, message.tool_calls) == ("length", None, [])
    assert message.reasoning


@pytest.mark.parametrize(
    ("body", "written", "may_follow"),
    [
        (OBJECT, "<answer>", {"{", "{}", "\n"}),
        (OBJECT, "hm <answer>", {"{", "{}", "\n"}),
        (CALLED, "<tool_call>", {"\n", " ", "{", "\t", "\r"}),
    ],
)
async def test_a_reply_that_thinks_unless_it_answers(
    words: Words, body: Mapping[str, object], written: str, may_follow: set[str]
) -> None:
    constraint = await words.bound(body, TURN, format=UNLESS_ANSWERED)
    say(constraint, words.encode(written))
    assert may_come(constraint, words.vocabulary) <= {words.piece(one) for one in may_follow}


async def test_calls_in_thinking_that_only_an_answer_ends(words: Words) -> None:
    constraint = await words.bound(CALLED, TURN, format=UNLESS_ANSWERED)
    say(constraint, words.encode("hm <tool_call>"))
    assert may_come(constraint, words.vocabulary) >= set(range(256))
