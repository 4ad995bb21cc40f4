"""The laws that hold for every format and every reply, well-formed or not (contract, rules 1 to 3, 7, 12, 13)."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamsieve.parsers import registry
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.conformance import cases, laws, specimens
from streamsieve.parsers.conformance.specimens import HOSTILE, Tray
from streamsieve.parsers.events import CallArguments, Content, Reasoning
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message, ToolCall

FAMILIES = sorted((Path(__file__).parents[1] / "cases").glob("*.jsonl"))

FORMATS = {format.name: format for format in registry.built_in()}
CALLING = {name: one for name, one in FORMATS.items() if one.calls or one.messages}
by_format = pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
by_calling_format = pytest.mark.parametrize("format", CALLING.values(), ids=CALLING)
thorough = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

CORPUS = [case for file in FAMILIES for case in cases.load(file)]


def fragments(format: Format) -> list[str]:
    """What replies in `format` are made of, those of its cases among them."""
    names = {*format.tool_names, *format.reasoning_names}
    own = [case.raw for case in CORPUS if {case.tool_parser, case.reasoning_parser} & names]
    return specimens.fragments(format, own)


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


@st.composite
def requests(draw: st.DrawFn, format: Format) -> Request:
    """A request with tools: with calls or without, in parallel or not, thinking on, off or not said."""
    return specimens.asked(
        format,
        thinking=draw(st.sampled_from([None, None, True, False])),
        tool_choice=draw(st.sampled_from(["auto", "auto", "auto", "none"])),
        parallel_tool_calls=draw(st.sampled_from([True, True, False])),
    )


finishes = st.sampled_from(["stop", "length", "content_filter", None])


@by_format
@thorough
@given(data=st.data(), finish=finishes, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_one_answer(format: Format, data: st.DataObject, finish: str | None, sizes: list[int]) -> None:
    """The answer does not depend on the cuts; parsed whole it differs only where a real call broke (rules 1 and 7)."""
    laws.one_answer(format, data.draw(replies(format)), data.draw(requests(format)), finish, sizes)


@by_format
@settings(parent=thorough, max_examples=40)
@given(text=st.text(max_size=200), finish=finishes)
def test_plain_text_is_kept(format: Format, text: str, finish: str | None) -> None:
    """Text without any beginning of a marker comes out as it is, in one tray (rules 2 and 3)."""
    text = "".join(character for character in text if character not in "<[{]｜助` \n" and not character.isspace())
    text = f"Plain{text}."
    laws.keeps_plain_text(format, text, finish)


@by_format
@settings(parent=thorough, max_examples=40)
@given(data=st.data())
def test_every_character_comes_from_the_reply(format: Format, data: st.DataObject) -> None:
    """Nothing is invented: each text tray is a subsequence of the reply (rule 3)."""
    laws.invents_nothing(format, data.draw(replies(format)))


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
    thinks = st.none() | text if specimens.thinks(format) else st.none()
    called = st.lists(calls(), max_size=3) if format.calls or format.messages else st.just([])
    return st.builds(Message, thinks, st.none() | text, called)


@by_format
@thorough
@given(data=st.data(), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_what_is_rendered_is_read(format: Format, data: st.DataObject, sizes: list[int]) -> None:
    """`parse(render(m)) == m` at every cut, for arbitrary messages that the format can say."""
    laws.reads_what_it_renders(format, data.draw(messages(st.one_of(safe_text, st.text(max_size=30)), format)), sizes)


@by_format
@thorough
@given(data=st.data())
def test_plain_messages_can_be_said(format: Format, data: st.DataObject) -> None:
    """A message whose texts hold no markup is never refused, whatever its arguments hold."""
    if specimens.restored(format):
        pytest.skip(f"{format.name} says no message as it is")
    message = data.draw(messages(safe_text, format))
    if not specimens.speaks_beside_calls(format) and message.tool_calls:
        message.content = None  # calls stand alone at the start, or are none
    if format.calls and format.calls.calls_in_reply == "one":
        del message.tool_calls[1:]
    if isinstance(format.calls, TaggedCalls) and format.calls.trim == "space":
        for call in message.tool_calls:  # white space round a value is no part of it
            inside = {
                key: one.strip() if isinstance(one, str) else one for key, one in json.loads(call.arguments).items()
            }
            call.arguments = json.dumps(inside)
    format.render(message, specimens.asked(format))


HAS = {Content: lambda format: True, Reasoning: specimens.thinks, CallArguments: specimens.arguments_stream}
TOLD = {
    f"{name}-{tray.__name__}": (format, tray)
    for name, format in FORMATS.items()
    for tray, has_it in HAS.items()
    if has_it(format)
}


@pytest.mark.parametrize(("format", "tray"), TOLD.values(), ids=TOLD)
@pytest.mark.parametrize("size", [1, 3, 7])
def test_deltas_leave_at_once(format: Format, tray: Tray, size: int) -> None:
    """Visible text that could not begin a marker leaves in the `feed` it came in; so does a string argument."""
    laws.leaves_at_once(format, tray, size)


MARKED = {name: format for name, format in FORMATS.items() if format.reasoning}


@pytest.mark.parametrize("format", MARKED.values(), ids=MARKED)
def test_a_marker_alone_sends_nothing(format: Format) -> None:
    """A delta that is only a marker gives no text."""
    laws.sends_nothing_for_a_marker(format)


@by_format
@pytest.mark.parametrize("kind", HOSTILE)
def test_work_grows_with_the_text_alone(format: Format, kind: str) -> None:
    """Twice a hostile text takes about twice the calls (rule 13)."""
    for opener in ("", *specimens.markers(format)):
        laws.grows_with_the_text(format, opener + HOSTILE[kind])


@by_format
def test_memory_is_bounded_by_what_is_held(format: Format) -> None:
    """Streaming a long reply holds on to nothing of it (rule 13)."""
    if specimens.restored(format):
        pytest.skip(f"{format.name} says no message as it is")
    tail = json.dumps({"body": "line of text\n" * 150_000 + "."})
    called = [ToolCall("id", "file.save", tail)] if specimens.arguments_stream(format) else []
    content = None if called else "line of text\n" * 150_000 + "."
    text = format.render(Message(None, content, called), specimens.asked(format))
    machine = format.machine(specimens.asked(format))
    pieces = [text[at : at + 400] for at in range(0, len(text), 400)]
    tracemalloc.start()
    for piece in pieces:
        machine.feed(piece)
    machine.finish("stop")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000
