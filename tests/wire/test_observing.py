"""What is told of each exchange, and to whom."""

from __future__ import annotations

import json
import logging
from typing import Any

import orjson
import pytest
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import REGISTRY

from streamsieve.parsers.chain import run
from streamsieve.parsers.conformance import cases
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.observing.record import Record
from streamsieve.wire.settings import Settings

TOOLS = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}]
SECRET = "the rain in Spain"
CALL = '<tool_call>{"name": "ping", "arguments": {"a": "' + SECRET + '"}}</tool_call>'


class Told(list[Record]):
    """An observer that remembers."""

    def __call__(self, record: Record) -> None:
        self.append(record)


def exchange(
    settings: Settings, pieces: list[bytes], *, kind: bytes = b"text/event-stream", **request: Any
) -> Exchange:
    body = {"model": "m-1", "messages": [{"role": "user", "content": SECRET}], "tools": TOOLS, **request}
    subject = Exchange(settings, orjson.dumps(body))
    subject.start(200, [(b"content-type", kind)])
    for piece in pieces:
        run(subject.feed(piece))
    return subject


def events(*texts: str, reason: str | None = "stop") -> list[bytes]:
    choices: list[dict[str, Any]] = [{"index": 0, "delta": {"content": text}, "finish_reason": None} for text in texts]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    return [b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [choice]}) for choice in choices]


def observed(texts: list[str], *, reason: str | None = "stop", **request: Any) -> Record:
    told = Told()
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", observers=[told])
    subject = exchange(settings, events(*texts, reason=reason), **request)
    run(subject.close())
    run(subject.aclose())
    run(subject.aclose())
    (record,) = told
    return record


@pytest.mark.parametrize(
    ("texts", "reason", "calls", "rules"),
    [
        (["Hm.</think>", CALL, CALL], "stop", {"complete": 2}, {}),
        (["</think>", CALL[:-30]], "length", {"cut": 1}, {"cut_call": 1}),
        (["</think>", CALL[:-20], "!!", "</tool_call>"], "stop", {"complete": 1}, {}),
        (["</think><tool_call>ping</tool_call>"], "stop", {"not_a_call": 1}, {"not_a_call": 1}),
    ],
)
def test_what_became_of_the_calls(texts: list[str], reason: str, calls: Any, rules: Any) -> None:
    record = observed(texts, reason=reason)
    if "!!" not in texts:
        assert (record.choices[0].calls, record.choices[0].rules) == (calls, rules)
    assert record.choices[0].finish_reason == reason
    assert (record.format, record.model, record.mode, record.outcome) == ("qwen3+hermes", "m-1", "stream", "complete")
    assert record.seconds >= (record.first_seconds or 0) > 0 < record.parse_seconds


def test_what_waited_the_longest_is_noted() -> None:
    record = observed(["</think>a", "<tool", "_call>", '{"name": "pi', 'ng", "arguments": {}}', "</tool_call>"])
    assert record.choices[0].most_held == len('<tool_call>{"name": "pi')


@pytest.mark.parametrize(
    ("end", "outcome"), [("close", "complete"), ("break_off", "broken_off"), ("aclose", "abandoned")]
)
def test_how_an_exchange_ended(end: str, outcome: str) -> None:
    told = Told()
    subject = exchange(Settings(tool_parser="hermes", observers=[told]), events("a"))
    run(getattr(subject, end)())
    run(subject.aclose())
    assert [record.outcome for record in told] == [outcome]


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        (b"data: [DONE]\n\n", "complete"),
        (b'data: {"error": {"message": "out of memory"}}\n\n', "broken_off"),
        (b"", "broken_off"),
    ],
)
@pytest.mark.parametrize("leaves", [False, True])
def test_how_a_stream_ended(last: bytes, outcome: str, leaves: bool) -> None:
    told = Told()
    subject = exchange(Settings(tool_parser="hermes", observers=[told]), [events("a")[0], last])
    if not leaves:
        run(subject.close())
    run(subject.aclose())
    assert [record.outcome for record in told] == ["abandoned" if leaves and not last else outcome]


@pytest.mark.parametrize("model", ["m" * 100_000, "\ud83d"])
def test_a_name_of_a_model_may_be_anything(model: str) -> None:
    told = Told()
    subject = Exchange(Settings(tool_parser="hermes", observers=[told]), json.dumps({"model": model}).encode())
    run(subject.aclose())
    name = told[-1].model or ""
    assert len(name.encode()) <= 256


def test_a_body_that_is_not_read_is_told_of_too() -> None:
    told = Told()
    subject = exchange(Settings(tool_parser="hermes", observers=[told]), [b"<p>"], kind=b"text/html")
    run(subject.aclose())
    assert [(record.outcome, record.mode, record.status) for record in told] == [("unread", "pass", 200)]


def test_a_refusal_is_told_of() -> None:
    told = Told()
    settings = Settings(tool_parser="hermes", observers=[told])
    subject = Exchange(settings, orjson.dumps({"messages": [], "tool_choice": "required"}))
    assert subject.refusal is not None
    assert [(record.outcome, record.status) for record in told] == [("refused", 400)]


def test_a_refusal_of_a_header_is_told_of_too() -> None:
    told = Told()
    settings = Settings(tool_parser="hermes", observers=[told], header_parsers=["mistral"])
    subject = Exchange(settings, b'{"messages": []}', headers=[(b"x-streamsieve-tool-parser", b"xlam")])
    assert subject.refusal is not None
    assert [(record.outcome, record.status, record.format) for record in told] == [("refused", 400, "hermes")]


def test_an_observer_that_fails_fails_no_reply(caplog: pytest.LogCaptureFixture) -> None:
    def failing(record: Record) -> None:
        raise RuntimeError("full")

    told = Told()
    subject = exchange(Settings(tool_parser="hermes", observers=[failing, told]), events("a"))
    run(subject.close())
    run(subject.aclose())
    assert len(told) == 1
    assert "an observer failed" in caplog.text


def test_the_log_line_has_everything_but_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamsieve.exchanges")
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", observers=["log"])
    subject = exchange(settings, events(f"{SECRET}</think>{SECRET}", CALL))
    run(subject.close())
    run(subject.aclose())
    (line,) = [entry for entry in caplog.records if entry.name == "streamsieve.exchanges"]
    fields = json.loads(line.getMessage())
    assert fields == line.exchange  # type: ignore[attr-defined]
    assert fields["calls"] == {"complete": 1}
    assert fields["finish_reasons"] == ["stop"]
    assert SECRET not in caplog.text
    assert "ping" not in caplog.text


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_the_metrics_count() -> None:
    def read() -> list[float]:
        format = {"format": "qwen3+hermes"}
        return [
            sample("streamsieve_exchanges_total", api="chat", mode="stream", outcome="complete", **format),
            sample("streamsieve_tool_calls_total", outcome="complete", **format),
            sample("streamsieve_repairs_total", rule="not_a_call", **format),
            sample("streamsieve_held_characters_count", **format),
            sample("streamsieve_parse_seconds_count", mode="stream", **format),
        ]

    before = read()
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", observers=["metrics"])
    subject = exchange(settings, events("</think><tool_call>", CALL))
    run(subject.close())
    run(subject.aclose())
    assert [after - known for after, known in zip(read(), before, strict=True)] == [1, 1, 1, 1, 1]


def test_the_current_span_has_the_attributes() -> None:
    tracer = TracerProvider().get_tracer("test")
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", observers=["telemetry"])
    with tracer.start_as_current_span("request") as span:
        subject = exchange(settings, events("</think><tool_call>", CALL))
        run(subject.close())
        run(subject.aclose())
    attributes = span.attributes  # type: ignore[attr-defined]
    assert attributes["gen_ai.request.model"] == "m-1"
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert attributes["gen_ai.request.stream"] is True
    assert attributes["streamsieve.format"] == "qwen3+hermes"
    assert [event.attributes["rule"] for event in span.events] == ["not_a_call"]  # type: ignore[attr-defined]


def test_without_a_span_nothing_happens() -> None:
    subject = exchange(Settings(observers=["telemetry"], tool_parser="hermes"), events("a"))
    run(subject.close())
    run(subject.aclose())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observers": ["metrix"]}, "observers.*metrix.*metrics"),
        ({"observers": "log"}, "observers: a list"),
        ({"capture": "/nowhere/at/all"}, "capture: /nowhere/at/all: "),
        ({"shadow": "yes"}, "shadow: True or False"),
        ({"shadow": True, "render_prompt": print}, "shadow: .*render_prompt"),
        ({"capture_messages": True}, "capture_messages: needs capture"),
    ],
)
def test_what_cannot_be_told_is_refused_at_the_start(options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Settings(**options)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_captured_reply_is_a_case_that_holds(tmp_path: Any, keeps: bool) -> None:
    file = tmp_path / "captured.jsonl"
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", capture=file, capture_messages=keeps)
    subject = exchange(settings, events("Hm.</thi", "nk>Look: ", CALL), tool_choice="auto")
    run(subject.close())
    run(subject.aclose())
    body = {"choices": [{"index": 0, "message": {"content": "</think>Hi"}, "finish_reason": "length"}]}
    whole = exchange(settings, [orjson.dumps(body)], kind=b"application/json")
    run(whole.close())
    run(whole.aclose())
    assert file.stat().st_mode & 0o777 == 0o600
    streamed, other = cases.load(file)
    assert streamed.chunks == ("Hm.</thi", "nk>Look: ", CALL)
    assert (streamed.engine_finish, other.engine_finish, other.raw) == ("stop", "length", "</think>Hi")
    for case in (streamed, other):
        assert case.expect is not None
        assert list(cases.check(case)) == []
    first = json.loads(file.read_text().splitlines()[0])
    assert first["messages"] == (
        [{"role": "user", "content": SECRET}] if keeps else [{"role": "user", "characters": len(SECRET)}]
    )


THEIRS = {
    "same": ({"reasoning": "Hm.", "content": "Look:", "tool_calls": [("ping", '{"a":"' + SECRET + '"}')]}, ()),
    "no call": ({"reasoning": "Hm.", "content": "Look: " + CALL}, ("content", "tool_calls", "finish_reason")),
    "no reasoning": (
        {"content": "Hm.</think>Look:", "tool_calls": [("ping", '{"a":"' + SECRET + '"}')]},
        ("reasoning", "content"),
    ),
}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("theirs", "differs"), THEIRS.values(), ids=list(THEIRS))
@pytest.mark.parametrize("asked", [False, True])
def test_a_shadow_compares_and_passes_on(whole: bool, theirs: Any, differs: Any, asked: bool) -> None:
    told = Told()
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", shadow=True, observers=[told], upstream="vllm")
    told_of_tokens = {"logprobs": True, "return_token_ids": True}
    request = {"messages": [], "tools": TOOLS, "stream": not whole, **(told_of_tokens if asked else {})}
    subject = Exchange(settings, orjson.dumps(request))
    assert orjson.loads(subject.request_body) == {**request, **told_of_tokens}
    fields = dict(theirs)
    if calls := fields.pop("tool_calls", None):
        fields["tool_calls"] = [
            {"index": place, "id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
            for place, (name, arguments) in enumerate(calls)
        ]
    tokens = ["Hm", ".", "</think>", "Look", ": ", CALL]
    choice: dict[str, Any] = {
        "index": 0,
        "message" if whole else "delta": fields,
        "logprobs": {"content": [{"token": token, "logprob": -1.0, "bytes": None} for token in tokens]},
        "finish_reason": "tool_calls" if calls else "stop",
    }
    kept = choice if asked else {**choice, "logprobs": None}
    choice["token_ids"] = list(range(len(tokens)))
    body = orjson.dumps({"id": "c", "choices": [choice], "prompt_token_ids": [1]})
    subject.start(200, [(b"content-type", b"application/json" if whole else b"text/event-stream")])
    sent = run(subject.feed(body if whole else b"data: %b\n\n" % body)) + run(subject.close())
    run(subject.aclose())
    got = orjson.loads(sent.removeprefix(b"data: "))
    assert got == (orjson.loads(body) if asked else {"id": "c", "choices": [kept]})
    assert told[0].choices[0].differs == differs


def test_a_shadow_without_tokens_compares_nothing() -> None:
    told = Told()
    settings = Settings(tool_parser="hermes", shadow=True, observers=[told])
    sent = events("Hello")
    subject = exchange(settings, sent[:-1])
    assert run(subject.feed(sent[-1])) == sent[-1]
    run(subject.aclose())
    assert told[0].choices[0].differs is None


def shadowed(told: Told, pieces: list[tuple[dict[str, Any], str | None]], **options: Any) -> None:
    """A streamed reply in shadow mode, of these deltas and the token that each came with."""
    settings = Settings(tool_parser="hermes", reasoning_parser="qwen3", shadow=True, observers=[told], **options)
    subject = exchange(settings, [])
    for place, (delta, token) in enumerate(pieces, 1):
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": "stop" if place == len(pieces) else None}
        if token is not None:
            choice["logprobs"] = {"content": [{"token": token, "logprob": -1.0, "bytes": None}]}
        run(subject.feed(b"data: %b\n\n" % orjson.dumps({"id": "c", "choices": [choice]})))
    run(subject.close())
    run(subject.aclose())


def test_a_chunk_of_nothing_but_a_marker_counts() -> None:
    told = Told()
    shadowed(told, [({"reasoning": "Hm"}, "Hm"), ({}, "</think>"), ({"content": "Hi"}, "Hi")])
    assert told[0].choices[0].differs == ()


def test_a_reply_that_is_not_all_known_is_neither_compared_nor_recorded(tmp_path: Any) -> None:
    told, file = Told(), tmp_path / "captured.jsonl"
    shadowed(told, [({"content": "Hm"}, "Hm"), ({"content": "Hi"}, None), ({"content": "Ho"}, "Ho")], capture=file)
    assert told[0].choices[0].differs is None
    assert file.read_bytes() == b""


@pytest.mark.parametrize("shadow", [False, True])
def test_a_long_reply_takes_no_memory_for_ever(tmp_path: Any, caplog: Any, shadow: bool) -> None:
    told, file = Told(), tmp_path / "captured.jsonl"
    pieces: list[tuple[dict[str, Any], str | None]] = [({"content": f"</think>{SECRET}"}, f"</think>{SECRET}")] * 50
    if shadow:
        shadowed(told, pieces, capture=file, max_body=4096)
    else:
        settings = Settings(tool_parser="hermes", observers=[told], capture=file, max_body=4096)
        subject = exchange(settings, events(*[SECRET] * 50))
        run(subject.close())
        run(subject.aclose())
        assert "is not recorded" in caplog.text
    assert told[0].choices[0].differs is None
    assert told[0].choices[0].texts == []
    assert file.read_bytes() == b""
    assert SECRET not in caplog.text


def test_a_reply_that_held_too_much_is_heard_to_its_end(tmp_path: Any) -> None:
    told, file = Told(), tmp_path / "captured.jsonl"
    settings = Settings(tool_parser="hermes", observers=[told], capture=file, max_held=20)
    subject = exchange(settings, events('<tool_call>{"arguments": {"a": ', SECRET, SECRET, reason="length"))
    run(subject.close())
    run(subject.aclose())
    assert told[0].choices[0].finish_reason == "length"
    assert file.read_bytes() == b""
