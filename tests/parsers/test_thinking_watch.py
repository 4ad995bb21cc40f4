"""Where thinking ends, seen while it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch
from streamsieve.parsers.registry import select
from streamsieve.parsers.request import Request
from streamsieve.parsers.thinking_watch import MessageWatch, Phase, ThinkingWatch
from streamsieve.parsers.tokens import SpecialTokens

SPAN = ReasoningSpan(
    pairs=(("<think>", "</think>"), ("<plan>", "</plan>")),
    ends_at_call=True,
    switch=Switch(keys=("enable_thinking",)),
    turn_heads=("<|im_start|>",),
)
OPEN = "<|im_start|>assistant\n<think>\n"
CLOSED = OPEN + "</think>\n"


def formatted(span: ReasoningSpan) -> Format:
    hermes = select(reasoning_parser=None, tool_parser="hermes")
    assert hermes is not None
    return replace(hermes, reasoning=span)


FORMAT = formatted(SPAN)
MARKED = formatted(replace(SPAN, starts="marked"))
UNLESS_ANSWERED = formatted(replace(SPAN, starts="unless answered", enders=("<answer>",), ends_at_call=False))
RESTORED = formatted(replace(SPAN, starts="restored"))
CALLS = Request(parse_calls=True, tools={"f": {}})


@pytest.mark.parametrize("split", ["whole", "character by character"])
@pytest.mark.parametrize(
    ("format", "request_", "text", "phase", "opener", "rest"),
    [
        (FORMAT, CALLS, "hm", Phase.THINKING, "", ""),
        (FORMAT, CALLS, "hm</think>\n\nyes", Phase.ENDED, "", "\n\nyes"),
        (FORMAT, CALLS, "<think>hm</think>yes", Phase.ENDED, "", "yes"),
        (FORMAT, CALLS, "hm</plan>", Phase.THINKING, "", ""),
        (FORMAT, CALLS, "hm<tool_call>{", Phase.ENDED, "<tool_call>", "{"),
        (FORMAT, Request(), "hm<tool_call>{", Phase.THINKING, "", ""),
        (FORMAT, replace(CALLS, prompt_tail=CLOSED), "", Phase.ENDED, "", ""),
        (FORMAT, replace(CALLS, chat_template_kwargs={"enable_thinking": False}), "", Phase.ENDED, "", ""),
        (MARKED, CALLS, " ", Phase.START, "", ""),
        (MARKED, CALLS, "<thi", Phase.START, "", ""),
        (MARKED, CALLS, "<thin>", Phase.ENDED, "", "<thin>"),
        (MARKED, CALLS, "\n<think>hm", Phase.THINKING, "", ""),
        (MARKED, CALLS, "<plan>hm</think></plan>yes", Phase.ENDED, "", "yes"),
        (MARKED, replace(CALLS, prompt_tail=OPEN), "hm</think>yes", Phase.ENDED, "", "yes"),
        (UNLESS_ANSWERED, CALLS, "hm<tool_call>", Phase.THINKING, "", ""),
        (UNLESS_ANSWERED, CALLS, "<tool_call>{", Phase.ENDED, "<tool_call>", "{"),
        (UNLESS_ANSWERED, CALLS, "<answer>yes", Phase.ENDED, "", "yes"),
        (RESTORED, CALLS, "hm</think>yes", Phase.ENDED, "", "yes"),
        (None, CALLS, "hm", Phase.ENDED, "", "hm"),
    ],
)
def test_where_it_ends(
    format: Format | None, request_: Request, text: str, phase: Phase, opener: str, rest: str, split: str
) -> None:
    watch = ThinkingWatch(format, request_)
    behind = ""
    for piece in [text] if split == "whole" else text:
        if watch.phase is Phase.ENDED:
            behind += piece
        watch.feed(piece)
    assert (watch.phase, watch.opener, watch.rest + behind) == (phase, opener, rest)


def test_a_marker_that_is_typed_is_text() -> None:
    watch = ThinkingWatch(FORMAT, CALLS, SpecialTokens({7: "</think>"}))
    watch.feed("</think>", [1])
    assert watch.phase is Phase.THINKING
    watch.feed("</think>", [7])
    assert watch.phase is Phase.ENDED


def test_what_may_begin_a_marker() -> None:
    watch = ThinkingWatch(FORMAT, CALLS)
    for piece, pending in (("hm <", "<"), ("/thi", "</thi"), ("s", ""), ("<tool", "<tool")):
        watch.feed(piece)
        assert watch.pending == pending


def test_the_markers_of_the_thinking_that_is_open() -> None:
    watch = ThinkingWatch(MARKED, CALLS)
    assert set(watch.openers) == {"<think>", "<plan>"}
    assert set(watch.closers) == {"</think>", "</plan>"}
    watch.feed("<plan>")
    assert (watch.closer, watch.ends) == ("</plan>", {"</plan>": False, "<tool_call>": True})


@pytest.mark.parametrize(
    ("text", "begun"), [("", False), ("\n", False), ("<think>", False), ("<think>h", True), ("h", True)]
)
def test_when_thinking_has_begun(text: str, begun: bool) -> None:
    watch = ThinkingWatch(FORMAT, CALLS)
    watch.feed(text)
    assert watch.begun is begun


def test_thinking_in_messages() -> None:
    format = select(reasoning_parser="openai_gptoss", tool_parser="openai")
    assert format is not None
    watch = MessageWatch(format, CALLS)
    seen = []
    for piece in (
        "<|channel|>analysis<|message|>",
        "hm",
        "<|en",
        "d|>",
        "<|start|>assistant<|channel|>final<|message|>",
        "a",
    ):
        watch.feed(piece)
        seen.append(watch.is_thinking)
    assert seen == [True, True, False, False, False, False]
    assert watch.closer == "<|end|>"
