"""The short way for events that are alike gives what the long way gives."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsieve.parsers.chain import run
from streamsieve.parsers.events import Event
from streamsieve.wire.chat.chunk_template import Template, Templates
from streamsieve.wire.settings import Settings

EVENT = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'

LEARNED: list[tuple[str, bytes, bool]] = [
    ("as vLLM writes it", EVENT, True),
    ("with spaces and CRLF", EVENT.replace(b":", b": ").replace(b"data: ", b"data:").replace(b"\n", b"\r\n"), True),
    ("escapes in the text", EVENT.replace(b'"a"', rb'"\"}\\\"\u00e6"'), True),
    ("an empty text", EVENT.replace(b'"a"', b'""'), True),
    ("a delta of another object comes first", EVENT.replace(b'"id":"c"', b'"x":{"delta":{"content":"a"}}'), False),
    ("a key that only ends like it", EVENT.replace(b'"id":"c"', rb'"x \"delta":{"content":"a"}'), False),
    ("one more field in the delta", EVENT.replace(b'"a"', b'"a","x":1'), False),
    ("content that is no string", EVENT.replace(b'"a"', b"null"), False),
    ("an id line", b"id: 1\n" + EVENT, False),
    ("a value that we only carry", EVENT.replace(b'"c"', b"1e400"), False),
]


@pytest.mark.parametrize(("event", "learned"), [pytest.param(*row[1:], id=row[0]) for row in LEARNED])
def test_what_a_template_is_made_of(event: bytes, learned: bool) -> None:
    chunk = json.loads(event[event.index(b"{") :].replace(b"1e400", b"1"))
    template = Template.learn(event, chunk)
    assert (template is not None) == learned
    if template is not None:
        assert template.text(event) == chunk["choices"][0]["delta"]["content"]


ALIKE: list[tuple[str, bytes, str | None]] = [
    ("another text", EVENT.replace(b'"a"', b'"b\\n"'), "b\n"),
    ("another chunk", EVENT.replace(b'"id":"c"', b'"id":"d"'), None),
    ("another end", EVENT.replace(b"null", b'"stop"'), None),
    ("another line end", EVENT[:-1] + b"\r\n", None),
    ("two events", EVENT + EVENT, None),
    ("two fields", EVENT.replace(b'"a"', b'"a","x":"b"'), None),
    ("a number", EVENT.replace(b'"a"', b"7"), None),
    ("no text", EVENT.replace(b'"a"', b"null"), None),
    ("half a character", EVENT.replace(b'"a"', b'"\\ud83d"'), None),
    ("no UTF-8", EVENT.replace(b'"a"', b'"\xff"'), None),
    ("a line break in the text", EVENT.replace(b'"a"', b'"a\nb"'), None),
    ("its two ends overlapping", EVENT.replace(b'"a"', b""), None),
    ("a part of it", EVENT[:50], None),
]


@pytest.mark.parametrize(("event", "text"), [pytest.param(*row[1:], id=row[0]) for row in ALIKE])
def test_which_events_are_alike(event: bytes, text: str | None) -> None:
    template = Template.learn(EVENT, json.loads(EVENT[6:]))
    assert template is not None
    assert template.text(event) == text


def test_an_event_filled_with_another_delta() -> None:
    template = Template.learn(EVENT, json.loads(EVENT[6:]))
    assert template is not None
    assert template.fill({"x": ["\ud83d"]}) == EVENT.replace(b'{"content":"a"}', b'{"x":["\\ud83d"]}')


PING = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
pieces = st.sampled_from(["<think>", "</think>", "Hi ", "\n", '"', "ø😀", PING, PING[:14], PING[14:], "<tool", "x"])
choices = st.fixed_dictionaries(
    {"delta": st.builds(dict, content=pieces), "index": st.integers(0, 1)},
    optional={"finish_reason": st.sampled_from(["stop", "length", ""]), "logprobs": st.just({"content": []})},
)


@given(
    upstream=st.lists(choices, max_size=12),
    per_feed=st.integers(1, 3),
    n=st.integers(1, 2),
    deliver=st.sampled_from(["stream", "complete"]),
)
def test_the_short_way_is_the_long_way(driver: Any, upstream: Any, per_feed: int, n: int, deliver: Any) -> None:
    settings = Settings(tool_parser="hermes", reasoning_parser="deepseek_r1", deliver=deliver)
    events = [driver.event({"delta": {"role": "assistant"}, "index": index}) for index in range(n)]
    events += [driver.event({**choice, "index": choice["index"] % n}) for choice in upstream]
    feeds = [b"".join(events[start : start + per_feed]) for start in range(0, len(events), per_feed)]
    short = run(driver.exchange(settings, feeds, {"n": n}, "stream"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Templates, "may_learn", lambda _: False)
        long = run(driver.exchange(settings, feeds, {"n": n}, "stream"))
    assert short.told == long.told
    assert [sent.count(b"\n\n") for sent in short.sent] == [sent.count(b"\n\n") for sent in long.sent]


def chunks(driver: Any, ids: list[str]) -> list[bytes]:
    return [driver.event({"delta": {"role": "assistant", "content": "a"}})] + [
        driver.event({"delta": {"content": "b"}}, id=id) for id in ids
    ]


def test_an_event_that_ends_another_chunk_is_not_taken_for_one_by_itself(driver: Any) -> None:
    events = chunks(driver, ["c", "c"])
    reply = driver.stream(Settings(tool_parser="hermes"), [*events, b"id: 7\n", events[-1]])
    assert reply.sent[-3:-1] == [b"", b"id: 7\n" + events[-1]]


# what events carry that are alike but for the text: of the choice, of the chunk
CARRIED: list[tuple[dict[str, Any], dict[str, Any]]] = [({}, {}), ({"y": 1}, {}), ({}, {"z": 2})]


@pytest.mark.parametrize(("beside", "top"), CARRIED)
def test_what_events_carry_goes_out_though_they_are_alike(driver: Any, beside: Any, top: Any) -> None:
    texts = ["a", "b", "<to", "ol", "s"]
    events = [driver.event({"delta": {"content": text}, **beside}, **top) for text in texts]
    reply = driver.stream(Settings(tool_parser="hermes"), [driver.event({"delta": {"role": "assistant"}}), *events])
    assert reply.message["content"] == "".join(texts)
    assert len(reply.chunks) == (1 + len(texts) if beside or top else 4)


async def as_it_is(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        yield event


def test_nothing_is_fed_to_a_parser_after_the_end(driver: Any) -> None:
    plain = driver.event({"delta": {"content": "a"}})
    error = b'data: {"error": "e"}\n\n'
    upstream = [driver.event({"delta": {"role": "assistant"}}), plain, plain, error, plain]
    assert driver.stream(Settings(tool_parser="hermes", stages=[as_it_is]), upstream).sent == [*upstream, b""]


LESSONS: list[tuple[str, list[str], int]] = [
    ("events that are alike are read once", ["c"] * 100, 1),
    ("a change costs one more", ["c"] * 50 + ["d"] * 50, 2),
    ("events that are never alike are soon no longer tried", [str(n) for n in range(100)], 17),
    ("changes are followed for ever", [str(n // 2) for n in range(200)], 100),
]


@pytest.mark.parametrize(("ids", "lessons"), [pytest.param(*row[1:], id=row[0]) for row in LESSONS])
def test_templates_are_made_as_long_as_they_are_of_use(
    driver: Any, monkeypatch: pytest.MonkeyPatch, ids: list[str], lessons: int
) -> None:
    learned: list[bytes] = []
    learn = Template.learn

    def counted(raw: bytes, chunk: Any) -> Template | None:
        learned.append(raw)
        return learn(raw, chunk)

    monkeypatch.setattr(Template, "learn", counted)
    reply = driver.stream(Settings(tool_parser="hermes"), chunks(driver, ids))
    assert len(learned) == lessons
    assert reply.message["content"] == "a" + "b" * len(ids)
