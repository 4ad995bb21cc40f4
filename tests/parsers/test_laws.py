"""The laws that hold for every format and every reply, well-formed or not (contract, rules 1 to 3, 7, 12, 13)."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamsieve.parsers import cases, registry
from streamsieve.parsers.events import CallArguments, Content, Reasoning
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.rendering import Inexpressible
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message, ToolCall
from streamsieve.parsers.tables import tables

FAMILIES = sorted((Path(__file__).parents[1] / "cases").glob("*.jsonl"))
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "file.save",
            "parameters": {
                "type": "object",
                "properties": {
                    "body": {"type": "string"},
                    "size": {"type": "integer"},
                    "ratio": {"type": "number"},
                    "ready": {"type": "boolean"},
                    "tags": {"type": "array"},
                    "meta": {"type": "object"},
                    "note": {"type": ["string", "null"]},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
]
REQUEST = Request.from_body({"tools": TOOLS, "chat_template_kwargs": {"thinking": True, "enable_thinking": True}})


def trays(message: Message) -> tuple[str | None, str | None, list[tuple[str, str]], str | None]:
    """What of a message is compared: ids are random."""
    called = [(call.name, call.arguments) for call in message.tool_calls]
    return message.reasoning, message.content, called, message.finish_reason


def cut(text: str, sizes: list[int]) -> list[str]:
    """`text` in pieces of these sizes, taken again from the first when they run out."""
    pieces, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        pieces.append(text[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


FORMATS = {format.name: format for format in registry.built_in()}
CALLING = {name: one for name, one in FORMATS.items() if one.calls or one.messages}
by_format = pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
by_calling_format = pytest.mark.parametrize("format", CALLING.values(), ids=CALLING)
thorough = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))

CORPUS = [case for file in FAMILIES for case in cases.load(file)]


def fragments(format: Format) -> list[str]:
    """What replies in `format` are made of: its markers, pieces of its cases, and things that break them."""
    names = {*format.tool_names, *format.reasoning_names}
    own = [case.raw for case in CORPUS if {case.tool_parser, case.reasoning_parser} & names]
    markers = set().union(*(table.roles for table in _tables(format)))
    return [
        *sorted(markers),
        *own,
        "ping",
        "file.save",
        '{"body": "é\\n',
        '"}',
        "{",
        "}",
        "[",
        "]",
        "<",
        "\n",
        " ",
        "ü 🙂",
    ]


def _tables(format: Format) -> list[Any]:
    known = tables(format, True, False)
    return [known.content, known.group, *known.reasoning]


@st.composite
def replies(draw: st.DrawFn, format: Format) -> str:
    """A reply: fragments in any order, or a case of the format with a few pieces cut out, doubled or put in."""
    known = fragments(format)
    text = "".join(draw(st.lists(st.sampled_from(known), max_size=6)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        inserted = draw(st.one_of(st.sampled_from(known), st.text(max_size=5)))
        text = text[:at] + inserted + text[at + draw(st.integers(0, 12)) :]
    return text


requests = st.builds(
    lambda parallel, choice, thinking: Request.from_body(
        {
            "tools": TOOLS,
            "tool_choice": choice,
            "parallel_tool_calls": parallel,
            "chat_template_kwargs": {} if thinking is None else {"thinking": thinking, "enable_thinking": thinking},
        }
    ),
    st.sampled_from([True, True, False]),
    st.sampled_from(["auto", "auto", "auto", "none"]),
    st.sampled_from([None, None, True, False]),
)
finishes = st.sampled_from(["stop", "length", "content_filter", None])


@by_format
@thorough
@given(data=st.data(), request_=requests, finish=finishes, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_one_answer(
    format: Format, data: st.DataObject, request_: Request, finish: str | None, sizes: list[int]
) -> None:
    """The answer does not depend on the cuts; parsed whole it differs only where a real call broke (rules 1 and 7)."""
    text = data.draw(replies(format))
    at_once = read(format, [text], request_, finish)
    for pieces in (list(text), cut(text, sizes)):
        assert trays(read(format, pieces, request_, finish)) == trays(at_once)
    whole = read(format, [text], request_, finish, whole=True)
    assert trays(read(format, cut(text, sizes), request_, finish, whole=True)) == trays(whole)
    if not any(repair.rule == "broken_call" for repair in whole.repairs):
        assert trays(whole) == trays(at_once)
    complete = read(format, cut(text, sizes), request_, finish, deliver="complete")
    assert trays(complete) == trays(read(format, [text], request_, finish, deliver="complete", whole=True))
    for call in complete.tool_calls:
        assert isinstance(json.loads(call.arguments), dict)
    assert len({call.id for call in at_once.tool_calls}) == len(at_once.tool_calls)


@by_format
@settings(parent=thorough, max_examples=60)
@given(text=st.text(max_size=200), finish=finishes)
def test_plain_text_is_kept(format: Format, text: str, finish: str | None) -> None:
    """Text without any beginning of a marker comes out as it is, in one tray (rules 2 and 3)."""
    text = "".join(character for character in text if character not in "<[{]｜助` \n" and not character.isspace())
    text = f"Plain{text}."
    message = read(format, list(text), REQUEST, finish)
    assert (message.reasoning or "") + (message.content or "") == text
    assert message.tool_calls == []


@by_format
@settings(parent=thorough, max_examples=60)
@given(data=st.data())
def test_every_character_comes_from_the_reply(format: Format, data: st.DataObject) -> None:
    """Nothing is invented: each text tray is a subsequence of the reply (rule 3)."""
    text = data.draw(replies(format))
    message = read(format, list(text), REQUEST)
    for tray in (message.reasoning, message.content):
        rest = iter(text)
        assert all(character in rest for character in tray or "")


words = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).map(lambda text: text.strip())
safe_text = st.lists(st.from_regex(r"[A-Za-z0-9äöü🙂.,;:!?()'\"-]{1,9}", fullmatch=True), min_size=1, max_size=6).map(
    " ".join
)
leaves = st.one_of(st.text(st.characters(exclude_categories=("Cs",)), max_size=20), st.integers(-(10**12), 10**12))
values = {
    "body": st.text(st.characters(exclude_categories=("Cs",)), max_size=60),
    "size": st.integers(-(10**15), 10**15),
    "ratio": st.floats(allow_nan=False, allow_infinity=False),
    "ready": st.booleans(),
    "tags": st.lists(leaves, max_size=4),
    "meta": st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), max_size=6), leaves, max_size=3),
}


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    keys = draw(st.lists(st.sampled_from(sorted(values)), unique=True, max_size=4))
    arguments = {key: draw(values[key]) for key in keys}
    name = draw(st.sampled_from(["file.save", "ping"])) if not keys else "file.save"
    return ToolCall("id", name, json.dumps(arguments, ensure_ascii=draw(st.booleans())))


def messages(text: st.SearchStrategy[str], format: Format) -> st.SearchStrategy[Message]:
    """Messages of what `format` has: thinking, content, and calls where it has them."""
    thinks = st.none() | text if format.reasoning or format.messages else st.none()
    called = st.lists(calls(), max_size=3) if format.calls or format.messages else st.just([])
    return st.builds(Message, thinks, st.none() | text, called)


def said(message: Message) -> tuple[str | None, str | None, list[tuple[str, Any]]]:
    called = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    return message.reasoning or None, message.content or None, called


@by_format
@thorough
@given(data=st.data(), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_what_is_rendered_is_read(format: Format, data: st.DataObject, sizes: list[int]) -> None:
    """`parse(render(m)) == m` at every cut, for arbitrary messages that the format can say."""
    message = data.draw(messages(st.one_of(safe_text, st.text(max_size=30)), format))
    try:
        text = format.render(message, REQUEST)
    except Inexpressible:
        return
    for pieces in ([text], list(text), cut(text, sizes)):
        assert said(read(format, pieces, REQUEST)) == said(message)


@by_format
@thorough
@given(data=st.data())
def test_plain_messages_can_be_said(format: Format, data: st.DataObject) -> None:
    """A message whose texts hold no markup is never refused, whatever its arguments hold."""
    message = data.draw(messages(safe_text, format))
    if format.calls and format.calls.answer_starts and not format.calls.line_starts and message.tool_calls:
        message.content = None  # calls stand alone at the start, or are none
    assert format.render(message, REQUEST)[:0] == ""


PROSE = "the quick brown ox jumps over the lazy dog; " * 20 + "the end."


def speaks(format: Format) -> bool:
    """Whether content may stand beside calls: not where calls count at the start alone."""
    return not (format.calls and format.calls.answer_starts and not format.calls.line_starts)


def thinks(format: Format) -> bool:
    return format.reasoning is not None or format.messages is not None


def told(format: Format, tray: type[Content] | type[Reasoning] | type[CallArguments]) -> str:
    """A reply whose prose goes to `tray`."""
    call = ToolCall("id", "file.save", json.dumps({"body": PROSE}))
    return format.render(
        Message(
            PROSE if tray is Reasoning else None,
            PROSE if tray is Content else None,
            [call] if tray is CallArguments else [],
        ),
        REQUEST,
    )


@by_format
@pytest.mark.parametrize("tray", [Content, Reasoning, CallArguments])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_deltas_leave_at_once(
    format: Format, tray: type[Content] | type[Reasoning] | type[CallArguments], size: int
) -> None:
    """Visible text that could not begin a marker leaves in the `feed` it came in; so does a string argument."""
    if (tray is Reasoning and not thinks(format)) or (tray is CallArguments and format.name not in CALLING):
        pytest.skip(f"{format.name} has no such tray")
    text = told(format, tray)
    start = text.index(PROSE) + 8
    machine = format.machine(REQUEST)
    machine.feed(text[:start])
    for at in range(start, start + len(PROSE) - 32, size):
        piece = text[at : at + size]
        out = "".join(event.json if isinstance(event, CallArguments) else event.text for event in machine.feed(piece))
        assert out.strip() == piece.strip(), f"held back behind {text[at - 20 : at]!r}"


@by_format
def test_a_marker_alone_sends_nothing(format: Format) -> None:
    """A delta that is only a marker gives no text."""
    if format.reasoning is None:
        pytest.skip("the format has no think markers to feed")
    opener, closer = format.reasoning.pairs[0]
    machine = format.machine(REQUEST)
    assert [event for event in machine.feed(opener) if isinstance(event, Content | Reasoning)] == []
    assert machine.feed("a") == [Reasoning("a")]
    assert [event for event in machine.feed(closer) if isinstance(event, Content | Reasoning)] == []
    assert machine.feed("b") == [Content("b")]


HOSTILE = {
    "angles": "<",
    "brackets": "[",
    "braces": '{"a":',
    "near markers": "<tool_cal<|tool_call_begi[TOOL_CALL</thin",
    "spaces": " ",
    "lines": "\n",
    "quotes": '"\\',
    "json openers": '<tool_call>{"arguments":{"k":"',
    "function openers": "<function=a><parameter=b>",
    "list openers": '[TOOL_CALLS][{"arguments":[',
}


def work(format: Format, text: str, size: int) -> int:
    """Function calls, of Python and of C, that reading `text` in deltas of `size` characters takes."""
    count = 0

    def tally(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    machine = format.machine(REQUEST)
    sys.setprofile(tally)
    try:
        for at in range(0, len(text), size):
            machine.feed(text[at : at + size])
        machine.finish("stop")
    finally:
        sys.setprofile(None)
    return count


@by_format
@pytest.mark.parametrize("kind", HOSTILE)
def test_work_grows_with_the_text_alone(format: Format, kind: str) -> None:
    """Twice a hostile text takes about twice the calls (rule 13)."""
    markers = set().union(*(table.roles for table in _tables(format)))
    for opener in ("", *sorted(markers)):
        unit = opener + HOSTILE[kind]
        once, twice = (work(format, unit * (length // len(unit)), 7) for length in (6_000, 12_000))
        assert twice < 2.6 * once + 500, (opener, once, twice)


@by_format
def test_memory_is_bounded_by_what_is_held(format: Format) -> None:
    """Streaming a long reply holds on to nothing of it (rule 13)."""
    tail = json.dumps({"body": "line of text\n" * 150_000})
    called = [ToolCall("id", "file.save", tail)] if format.calls or format.messages else []
    content = None if called else "line of text\n" * 150_000 + "."
    text = format.render(Message(None, content, called), REQUEST)
    machine = format.machine(REQUEST)
    pieces = [text[at : at + 400] for at in range(0, len(text), 400)]
    tracemalloc.start()
    for piece in pieces:
        machine.feed(piece)
    machine.finish("stop")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000
