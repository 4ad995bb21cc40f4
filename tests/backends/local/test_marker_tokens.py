"""Special tokens under a grammar: only where it names them, and there nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from streamsieve.backends.local.constraints.bound_text import BoundText
from streamsieve.backends.local.constraints.grammar import Grammars
from streamsieve.backends.local.constraints.vocabulary import Vocabulary, is_allowed
from streamsieve.parsers.tag_parts import JsonObject
from streamsieve.wire.request.refusal import Refused
from tests.backends.local.constraint_kit import Speaker

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
JSON: JsonObject = {"type": "json_schema", "json_schema": CITY}
ANY: JsonObject = {"type": "any_text"}
TAGS = [
    {"type": "tag", "begin": "<tool_call>a:", "content": JSON, "end": "</tool_call>"},
    {"type": "tag", "begin": "<tool_call>b:", "content": {"type": "any_text"}, "end": ["!", "?"]},
]
SPECIAL = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_start|>")


def const(value: str) -> JsonObject:
    return {"type": "const_string", "value": value}


def sequence(*parts: Mapping[str, object]) -> JsonObject:
    return {"type": "sequence", "elements": list(parts)}


def styled(style: str) -> JsonObject:
    return {"type": "json_schema", "json_schema": CITY, "style": style}


class Model(Speaker):
    """Writes what a tag binds."""

    async def start(self, part: Mapping[str, object]) -> BoundText:
        """The text that a tag of this format binds."""
        return (await self.grammars.compile({"format": part}, "tag")).start()

    def feed(self, bound: BoundText, text: str) -> bool:
        """Whether `text` may come; special tokens in it are tokens, all else are bytes."""
        return all(self.allowed(bound, token) and bound.accept(token) for token in self.encode(text))

    def allowed(self, bound: BoundText, token: int) -> bool:
        row = bound.row()
        return row is None or is_allowed(row, token)

    def specials(self, bound: BoundText) -> set[str]:
        """Which special tokens may come."""
        return {text for text in SPECIAL if self.allowed(bound, self.vocabulary.special[text])}

    def byte(self, bound: BoundText, letter: str) -> bool:
        return self.allowed(bound, self.encode(letter)[0])


@pytest.fixture(scope="module")
def model(byte_tokenizer: PreTrainedTokenizerFast) -> Iterator[Model]:
    made = Model(byte_tokenizer, [byte_tokenizer.eos_token_id, byte_tokenizer.pad_token_id], spare=5)
    yield made
    made.grammars.close()


@pytest.mark.parametrize(
    ("part", "written", "may_come"),
    [
        (JSON, "", set()),
        (JSON, '{"city": "a', set()),
        ({"type": "json_schema", "json_schema": {"type": "string", "maxLength": 9}}, '"a', set()),
        ({"type": "json_schema", "json_schema": {"type": "string", "pattern": "^[^x]*$"}}, '"a', set()),
        ({"type": "regex", "pattern": "a.*"}, "a", set()),
        ({"type": "grammar", "grammar": "root ::= [^b]*"}, "a", set()),
        ({"type": "any_text"}, "a", set()),
        (styled("qwen_xml"), "<parameter=city>a", set()),
        (styled("minimax_xml"), '<parameter name="city">a', set()),
        (const("<tool_call>\n"), "", {"<tool_call>"}),
        (sequence(const("<tool_call>"), JSON, const("</tool_call>")), '<tool_call>{"city": "', set()),
        (sequence(const("<tool_call>"), JSON, const("</tool_call>")), '<tool_call>{"city": ""}', {"</tool_call>"}),
        (sequence({"type": "any_text"}, const("</think>")), "a", {"</think>"}),
        (sequence({"type": "any_text", "excludes": ["ab"]}, const("</think>")), "a", {"</think>"}),
        (
            {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
            "<think>x",
            {"</think>"},
        ),
        ({"type": "token", "token": "<think>"}, "", {"<think>"}),
    ],
    ids=str,
)
async def test_where_special_tokens_may_come(
    model: Model, part: Mapping[str, object], written: str, may_come: set[str]
) -> None:
    bound = await model.start(part)
    assert model.feed(bound, written)
    assert model.specials(bound) == may_come


async def test_a_marker_is_not_spelled(model: Model) -> None:
    bound = await model.start(const("<tool_call>x"))
    assert not model.byte(bound, "<")


async def test_a_special_token_may_be_spelled_in_a_string(model: Model) -> None:
    bound = await model.start(JSON)
    assert model.feed(bound, '{"city": "')
    for letter in "<think>":
        assert model.feed(bound, letter)


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("excludes", [[], ["<function="], ["<function=", "</tool_call>"]], ids=str)
async def test_triggered_by_a_token(model: Model, once: bool, excludes: list[str]) -> None:
    part = {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": TAGS, "stop_after_first": once,
            "excludes": excludes}  # fmt: skip
    bound = await model.start(part)
    assert model.feed(bound, "free é <|im_start|> text <function")
    assert model.byte(bound, "=") is not ("<function=" in excludes)
    assert model.specials(bound) == set(SPECIAL) - set(excludes)
    assert bound.may_end
    assert model.feed(bound, "<tool_call>")
    assert not bound.may_end
    assert model.specials(bound) == set()
    assert [letter for letter in "abc" if model.byte(bound, letter)] == ["a", "b"]
    assert model.feed(bound, 'a:{"city": "x"}</tool_call>')
    assert bound.done is once
    assert model.byte(bound, "f") is not once


async def test_triggered_by_text(model: Model) -> None:
    tags = [{"type": "tag", "begin": "<fn=a>", "content": JSON, "end": "</tool_call>"}]
    bound = await model.start({"type": "triggered_tags", "triggers": ["<fn="], "tags": tags})
    assert model.feed(bound, "free <think> <fn=")
    assert [letter for letter in "ab" if model.byte(bound, letter)] == ["a"]
    assert model.feed(bound, 'a>{"city": ""}</tool_call> and free')


async def test_triggered_by_tokens_and_by_text(model: Model) -> None:
    """xgrammar looks for tokens or for text, not for both: calls that text would begin cannot begin."""
    tags = [*TAGS, {"type": "tag", "begin": "<fn=a>", "content": JSON, "end": ""}]
    bound = await model.start({"type": "triggered_tags", "triggers": ["<tool_call>", "<fn="], "tags": tags})
    assert model.feed(bound, "free <fn")
    assert not model.byte(bound, "=")
    assert model.feed(bound, "<tool_call>b:")


async def test_at_least_one(model: Model) -> None:
    bound = await model.start(
        {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": TAGS, "at_least_one": True}
    )
    assert model.specials(bound) == {"<tool_call>"}
    assert model.feed(bound, "<tool_call>b:any text?and free")
    assert bound.may_end


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({}, ["", "A", "A, A"]),
        ({"at_least_one": True}, ["A", "A, A"]),
        ({"stop_after_first": True}, ["", "A"]),
        ({"at_least_one": True, "stop_after_first": True}, ["A"]),
    ],
    ids=str,
)
async def test_tags_with_separator(model: Model, options: Mapping[str, object], taken: list[str]) -> None:
    part = {"type": "tags_with_separator", "tags": TAGS, "separator": "<think>", **options}
    call = '<tool_call>a:{"city": ""}</tool_call>'
    for text in ("", "A", "A, A"):
        bound = await model.start(part)
        ends = model.feed(bound, text.replace("A", call).replace(", ", "<think>")) and bound.may_end
        assert ends is (text in taken)


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        (sequence(const("a<|im_end|>b")), {"a": True, "ab": False}),
        (sequence(const("a"), const("<|im_end|>"), const("b")), {"a": True, "ab": False}),
        (
            sequence(const("a"), {"type": "optional", "content": const("b<|im_end|>")}, const("c")),
            {"ab": True, "ac": True, "abc": False},
        ),
        ({"type": "star", "content": const("a<|im_end|>")}, {"": True, "a": True, "aa": False}),
        ({"type": "plus", "content": const("a<|im_end|>")}, {"": False, "a": True, "aa": False}),
        ({"type": "repeat", "min": 1, "max": 3, "content": const("a<|im_end|>")}, {"": False, "a": True, "aa": False}),
    ],
    ids=str,
)
async def test_a_token_that_ends_the_reply(model: Model, part: Mapping[str, object], texts: Mapping[str, bool]) -> None:
    for text, is_whole in texts.items():
        bound = await model.start(part)
        assert (model.feed(bound, text) and bound.may_end) is is_whole


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("x", "a format is an object"),
        ({"type": "const_string"}, "value is a string"),
        ({"type": "sequence", "elements": []}, "a list that is not empty"),
        ({"type": "tag", "begin": 1, "content": JSON, "end": ""}, "begin of a tag"),
        ({"type": "tag", "begin": "a", "content": JSON, "end": 1}, "end of a tag"),
        ({"type": "triggered_tags", "triggers": ["<other"], "tags": TAGS}, "no tag begins"),
        ({"type": "token", "token": "<none>"}, "not in the vocabulary"),
        ({"type": "dispatch", "rules": [["a"]]}, "a pattern and a format"),
        ({"type": "nothing"}, "not recognized"),
    ],
    ids=str,
)
async def test_what_is_no_tag(model: Model, part: object, said: str) -> None:
    with pytest.raises(Refused, match=said):
        await model.grammars.compile({"format": part}, "tag")


async def test_characters_are_whole(model: Model) -> None:
    """Bytes that are no UTF-8, of which xgrammar takes some: half surrogate pairs, and long forms in patterns."""
    anything = {"type": "json_schema", "json_schema": {"type": "string", "pattern": "^[^x]*$"}}
    for first, second in ((b"\xed", b"\xa0"), (b"\xe0", b"\x80"), (b"\xf0", b"\x80"), (b"\xf4", b"\x90")):
        bound = await model.start(anything)
        byte = {text: number for number, text in enumerate(model.vocabulary.texts) if len(text) == 1}
        assert model.feed(bound, '"')
        assert bound.accept(byte[first])
        assert not model.allowed(bound, byte[second])
        assert any(model.allowed(bound, byte[bytes([code])]) for code in range(0x80, 0xC0))


async def test_control_characters_in_strings_of_a_length(model: Model) -> None:
    bound = await model.start({"type": "json_schema", "json_schema": {"type": "string", "maxLength": 5}})
    assert model.feed(bound, '"a')
    assert not any(model.byte(bound, letter) for letter in "\t\x01\x1f\n")
    assert model.byte(bound, "b")


@pytest.mark.parametrize("style", ["json", "qwen_xml", "minimax_xml", "deepseek_xml", "glm_xml"])
async def test_no_arguments_and_a_love_of_blanks(model: Model, style: str) -> None:
    empty = {"type": "json_schema", "json_schema": {"type": "object", "properties": {}}, "style": style}
    bound = await model.start(sequence(const("<tool_call>"), empty, const("</tool_call>")))
    steps = 0
    while not bound.done:
        blank = next((letter for letter in "\t\n " if model.byte(bound, letter)), None)
        row = bound.row()
        assert row is not None
        any_token = next(number for number in range(model.vocabulary.size) if is_allowed(row, number))
        bound.accept(any_token if blank is None else model.encode(blank)[0])
        steps += 1
    assert steps < 30


async def test_a_vocabulary_with_byte_fallback() -> None:
    """As SentencePiece has it: a space is written otherwise, and bytes are tokens of their own."""
    pieces = ["<unk>", *(f"<0x{code:02X}>" for code in range(256)), "▁", "▁a", "a", "{", "}", '"', ":", "city", "é"]
    made = Tokenizer(models.BPE({piece: number for number, piece in enumerate(pieces)}, [], byte_fallback=True))
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.add_special_tokens(["</s>", "<tool_call>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", unk_token="<unk>")
    vocabulary = Vocabulary(tokenizer, size=len(tokenizer), stops=[tokenizer.eos_token_id])
    number = {text: number for number, text in enumerate(vocabulary.texts)}
    assert number.keys() >= {b" ", b" a", b"\xc3", b"\n", "é".encode(), b"<tool_call>"}
    grammars = Grammars(vocabulary)
    bound = (await grammars.compile({"format": sequence(const("<tool_call>"), JSON)}, "tag")).start()
    for text in (b"<tool_call>", b"{", b'"', b"city", b'"', b":", b" ", b'"', b" a", b"\xc3", b"\xa9", b'"', b"}"):
        row = bound.row()
        assert row is not None
        assert is_allowed(row, number[text])
        assert is_allowed(row, number[b"<tool_call>"]) is (text == b"<tool_call>")
        assert bound.accept(number[text])
    assert bound.done
    grammars.close()
