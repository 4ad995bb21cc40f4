"""Where thinking starts and ends, for every format that has think markers, generated from its span (rule 5)."""

from __future__ import annotations

import dataclasses

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.reasoning import Opening, ReasoningSpan
from streamsieve.parsers.request import Request


def _at_level(format: Format, pair: tuple[str, str]) -> Format:
    """`format` as it reads a reply in which only `pair` counts, where the request's level chooses one."""
    if format.reasoning is None or format.reasoning.levels is None:
        return format
    return dataclasses.replace(format, reasoning=dataclasses.replace(format.reasoning, pairs=(pair,), levels=None))


FORMATS = {
    f"{format.name}-{number}": (_at_level(format, pair), pair)
    for format in registry.built_in()
    if format.reasoning and format.reasoning.starts != "restored"  # that one splits nothing
    for number, pair in enumerate(format.reasoning.pairs)
}
by_pair = pytest.mark.parametrize(("format", "pair"), FORMATS.values(), ids=FORMATS)


def span(format: Format) -> ReasoningSpan:
    assert format.reasoning is not None
    return format.reasoning


def asking(format: Format, *, thinking: bool = True, tail: str | None = None) -> Request:
    """A request that asks for thinking, or for none, with the keys that the format looks at."""
    switch = span(format).switch
    kwargs: dict[str, object] = dict.fromkeys(switch.keys, thinking)
    if switch.level:
        key, nothing = switch.level
        kwargs[key] = "high" if thinking else nothing
    return Request(chat_template_kwargs=kwargs, prompt_tail=tail)


def trays(format: Format, pieces: list[str], request: Request, finish: str = "stop") -> tuple[str | None, str | None]:
    alone = dataclasses.replace(format, calls=None)
    whole, streamed = read(alone, pieces, request, finish, whole=True), read(alone, "".join(pieces), request, finish)
    assert (whole.reasoning, whole.content) == (streamed.reasoning, streamed.content)
    return whole.reasoning, whole.content


def starts_open(format: Format, pair: tuple[str, str]) -> bool:
    """Whether a reply without an opener is in thinking, and ends it by this pair's closer."""
    return span(format).starts in ("open", "unless answered") and pair == span(format).pairs[0]


@by_pair
def test_opener_in_the_reply(format: Format, pair: tuple[str, str]) -> None:
    if span(format).starts == "open" and not starts_open(format, pair):
        pytest.skip("the prompt decides for the first pair")
    opener, closer = pair
    assert trays(format, [f"{opener}why{closer}answer"], asking(format)) == ("why", "answer")
    assert trays(format, [f"\n{opener}\nwhy\n{closer}\n\nanswer"], asking(format)) == ("why", "answer")


@by_pair
def test_opener_in_the_prompt(format: Format, pair: tuple[str, str]) -> None:
    opener, closer = pair
    head = span(format).turn_heads[0] if span(format).turn_heads else ""
    assert trays(format, [f"why{closer}answer"], asking(format, tail=f"{head}{opener}\n")) == ("why", "answer")


@by_pair
def test_opener_nowhere(format: Format, pair: tuple[str, str]) -> None:
    expected = ("words", None) if span(format).starts in ("open", "unless answered") else (None, "words")
    assert trays(format, ["words"], asking(format)) == expected


@by_pair
def test_prompt_that_has_closed_the_thinking(format: Format, pair: tuple[str, str]) -> None:
    opener, closer = pair
    assert trays(format, ["answer"], asking(format, tail=f"{opener}\n{closer}\n\n")) == (None, "answer")


@by_pair
def test_history_is_no_prompt_tail(format: Format, pair: tuple[str, str]) -> None:
    """Think tags before the last turn head say nothing of this turn."""
    opener, closer = pair
    for head in span(format).turn_heads:
        tail = f"{opener}old{closer}old answer{head}"
        assert trays(format, ["words"], asking(format, tail=tail)) == trays(format, ["words"], asking(format))


@by_pair
def test_cut_thinking_is_thinking(format: Format, pair: tuple[str, str]) -> None:
    request = asking(format, tail=pair[0])
    assert trays(format, ["never end"], request, "length") == ("never end", None)
    assert trays(format, [f"never end{pair[1][:-1]}"], request, "length") == (f"never end{pair[1][:-1]}", None)


@by_pair
def test_empty_thinking_is_none(format: Format, pair: tuple[str, str]) -> None:
    for inside in ("", " \n"):
        assert trays(format, [f"{inside}{pair[1]}answer"], asking(format, tail=pair[0])) == (None, "answer")


@by_pair
def test_nested_opener(format: Format, pair: tuple[str, str]) -> None:
    opener, closer = pair
    kept = "" if span(format).repeated_opener == "dropped" else opener
    assert trays(format, [f"a{opener}b{closer}c"], asking(format, tail=opener)) == (f"a{kept}b", "c")


@by_pair
def test_closer_in_the_answer(format: Format, pair: tuple[str, str]) -> None:
    closer = pair[1]
    kept = "" if span(format).stray_closer == "dropped" else closer
    assert trays(format, [f"a{closer}b{closer}c"], asking(format, tail=pair[0])) == ("a", f"b{kept}c")


@by_pair
def test_opener_in_the_answer(format: Format, pair: tuple[str, str]) -> None:
    opener, closer = pair
    reopens = opener in span(format).reopeners
    expected = ("ac", "b") if reopens else ("a", f"b{opener}c")
    assert trays(format, [f"a{closer}b{opener}c"], asking(format, tail=opener)) == expected


@by_pair
def test_deltas_that_are_one_marker_or_part_of_one(format: Format, pair: tuple[str, str]) -> None:
    opener, closer = pair
    half = len(closer) // 2
    request = asking(format, tail=opener)
    for pieces in (["why", closer, "answer"], ["why", closer[:half], closer[half:], "answer"], [f"why{closer}answer"]):
        assert trays(format, pieces, request) == ("why", "answer")


@by_pair
def test_thinking_switched_off(format: Format, pair: tuple[str, str]) -> None:
    """Everything is content and think tags are text, where the request can say so."""
    if not span(format).switch.keys:
        pytest.skip("nothing in the request switches this format's thinking")
    opener, closer = pair
    assert trays(format, [f"a{opener}b{closer}c"], asking(format, thinking=False)) == (None, f"a{opener}b{closer}c")


@by_pair
def test_whether_thinking_has_ended_in_the_prompt(format: Format, pair: tuple[str, str]) -> None:
    opener, closer = pair
    ask = [
        (f"{opener}", Opening.REASONING),
        (f"{opener}why", Opening.REASONING),
        (f"{opener}why{closer}", Opening.ANSWERED),
    ]
    for tail, expected in ask:
        assert span(format).opening(asking(format, tail=tail))[0] is expected
    starts = {"open": Opening.REASONING, "unless answered": Opening.UNLESS_ANSWERED}
    before = starts.get(span(format).starts, Opening.MARKED)
    assert span(format).opening(asking(format, tail="Hello"))[0] is before
