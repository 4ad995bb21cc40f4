"""The Responses API in front of an upstream that has chat completions only."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.responses import Response

from streamsieve.parsers.chain import run
from streamsieve.parsers.events import Content, Event, Reasoning
from streamsieve.wire.settings import Settings

ANSWER = ("The tide — I look.", "One moment. 😀", [("get_tide", '{"port": "Bodø", "days": 2}')])


def test_a_stream_has_the_events_of_the_grammar_in_order(driver, chat, translating, raw) -> None:
    streamed = driver.stream(translating, chat.reply(raw)).check()
    text = ["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"]
    assert streamed.told == [
        "created",
        "in_progress",
        "output_item.added",
        *text,
        "output_item.done",
        "output_item.added",
        *[name.replace("reasoning", "output") for name in text],
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]


def test_a_stream_and_a_whole_reply_end_in_the_same_response(driver, chat, translating, raw, trays_of) -> None:
    streamed = driver.stream(translating, chat.reply(raw)).check().response
    whole = driver.whole(translating, chat.whole({"content": raw}))
    assert trays_of(streamed["output"]) == trays_of(whole["output"]) == ANSWER
    for response in (streamed, whole):
        for item in response.pop("output"):
            assert item["status"] == "completed"
        del response["id"]
    assert streamed == whole


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_pieces_do_not_show(driver, chat, translating, raw, trays_of, size) -> None:
    assert trays_of(driver.stream(translating, chat.reply(raw, size)).check().response["output"]) == ANSWER


def test_the_bytes_may_be_cut_anywhere(driver, chat, translating, raw) -> None:
    body = b"".join(chat.reply(raw, 12))
    expected = driver.stream(translating, [body]).nameless
    assert driver.stream(translating, [body[place : place + 1] for place in range(len(body))]).nameless == expected
    for cut in range(0, len(body), 7):
        assert driver.stream(translating, [body[:cut], body[cut:]]).nameless == expected


# finish reason of the completion, how the response ends
ENDINGS: list[tuple[str | None, dict[str, Any]]] = [
    ("stop", {"status": "completed", "incomplete_details": None, "error": None}),
    ("tool_calls", {"status": "completed"}),
    ("eos", {"status": "completed"}),
    ("length", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "error": None}),
    ("content_filter", {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
    ("abort", {"status": "failed"}),
    (None, {"status": "failed", "incomplete_details": None}),
]


@pytest.mark.parametrize(("finish", "expected"), ENDINGS)
def test_how_a_response_ends(driver, chat, translating, finish, expected) -> None:
    streamed = driver.stream(translating, chat.reply("<think>\nNo.\n</think>\n\nHalf a", finish=finish)).check()
    assert {name: streamed.response[name] for name in expected} == expected
    assert streamed.events[-1]["type"] == f"response.{expected['status']}"
    assert bool(streamed.response["error"]) == (expected["status"] == "failed")
    whole = driver.whole(translating, chat.whole({"content": "<think>\nNo.\n</think>\n\nHalf a"}, finish))
    assert {name: whole[name] for name in expected} == expected
    for response in (streamed.response, whole):
        thought, said = (item["status"] for item in response["output"])
        assert thought == "completed"
        assert said == ("completed" if expected["status"] == "completed" else "incomplete")


CUT = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "get_tide", "arguments": {"p'


def test_a_call_that_was_cut_is_never_said_to_be_done(driver, chat, translating, trays_of) -> None:
    streamed = driver.stream(translating, chat.reply(CUT, finish="length")).check()
    assert trays_of(streamed.response["output"]) == (None, None, [("ping", "{}"), ("get_tide", '{"p')])
    assert [item["status"] for item in streamed.response["output"]] == ["completed", "incomplete"]
    done = [event for event in streamed.events if event["type"] == "response.function_call_arguments.done"]
    assert [event["arguments"] for event in done] == ["{}"]


def test_with_deliver_complete_it_is_text(driver, chat, parsers, trays_of) -> None:
    settings = Settings(**parsers, responses="translate", deliver="complete")
    response = driver.stream(settings, chat.reply(CUT, finish="length")).check().response
    assert trays_of(response["output"])[2] == [("ping", "{}")]
    assert "get_tide" in trays_of(response["output"])[1]


def test_text_after_a_call_is_a_message_of_its_own(driver, chat, translating, raw, trays_of) -> None:
    output = driver.stream(translating, chat.reply(raw + "\nDone.")).check().response["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "function_call", "message"]
    assert trays_of(output)[1] == "One moment. 😀\n\nDone."


# request, the reasoning item
REASONING = [
    ({}, {"summary": [], "content": [{"type": "reasoning_text", "text": "The tide — I look."}]}),
    ({"reasoning": {"effort": "low"}}, {"summary": [], "content": [{"type": "reasoning_text", "text": ANSWER[0]}]}),
    ({"reasoning": {"summary": "auto"}}, {"summary": [{"type": "summary_text", "text": ANSWER[0]}], "content": []}),
    ({"reasoning": {"generate_summary": "concise"}}, {"summary": [{"type": "summary_text", "text": ANSWER[0]}]}),
]


@pytest.mark.parametrize(("request_", "expected"), REASONING)
def test_reasoning_goes_where_the_client_looks(driver, chat, translating, raw, request_, expected) -> None:
    streamed = driver.stream(translating, chat.reply(raw), request_).check()
    item = streamed.response["output"][0]
    assert {name: item[name] for name in expected} == expected
    kinds = {event["type"] for event in streamed.events if "reasoning" in event["type"]}
    assert kinds
    assert all(("summary" in kind) == bool(expected["summary"]) for kind in kinds)
    assert driver.whole(translating, chat.whole({"content": raw}), request_)["output"][0].keys() == item.keys()


def test_no_reasoning_where_none_is_wanted(driver, chat, translating, raw, trays_of) -> None:
    request = {"include_reasoning": False}
    expected = (None, *ANSWER[1:])
    assert trays_of(driver.stream(translating, chat.reply(raw), request).check().response["output"]) == expected
    assert trays_of(driver.whole(translating, chat.whole({"content": raw}), request)["output"]) == expected


def test_usage_comes_under_its_own_names(driver, chat, translating, raw) -> None:
    expected = {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 8,
    }
    assert driver.stream(translating, chat.reply(raw)).check().response["usage"] == expected
    assert driver.whole(translating, chat.whole({"content": raw}))["usage"] == expected


def test_the_response_repeats_its_request(driver, chat, translating, raw) -> None:
    request = {
        "instructions": "Be brief.",
        "metadata": {"a": "b"},
        "max_output_tokens": 9,
        "temperature": 0.5,
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "text": {"format": {"type": "json_object"}},
        "store": True,
        "truncation": "auto",
    }
    said = {**request, "store": False, "truncation": "disabled"}
    streamed = driver.stream(translating, chat.reply(raw), request).check()
    for response in (streamed.events[0]["response"], streamed.response):
        assert {name: response[name] for name in said} == said
        assert [tool["name"] for tool in response["tools"]] == ["get_tide", "ping"]


def test_what_the_upstream_leaves_out_is_said_all_the_same(driver, chat, translating) -> None:
    choice = {"index": 0, "message": {"content": "Hi", "role": "assistant"}, "finish_reason": "stop"}
    delta = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
    whole = driver.whole(translating, {"choices": [choice], "created": None})
    streamed = driver.stream(translating, [b"data: %b\n\n" % json.dumps({"choices": [delta]}).encode()]).check()
    for response in (whole, streamed.response):
        Response.model_validate(response)
        assert response["model"] == "m"
        assert response["created_at"] > 0


def test_only_the_first_call_where_calls_are_not_parallel(driver, chat, translating, trays_of) -> None:
    calls = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>' * 2
    request = {"parallel_tool_calls": False}
    output = driver.stream(translating, chat.reply(calls), request).check().response["output"]
    assert trays_of(output) == (None, None, [("ping", "{}")])


SORTED_DELTAS: list[dict[str, Any]] = [
    {"role": "assistant", "content": ""},
    {"reasoning_content": "Let me "},
    {"reasoning_content": "see."},
    {"content": "Two calls."},
    {"tool_calls": [{"index": 0, "id": "c0", "type": "function", "function": {"name": "ping", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    {"tool_calls": [{"index": 1, "id": "c1", "type": "function", "function": {"name": "get_tide", "arguments": "{"}}]},
    {"tool_calls": [{"index": 1, "function": {"arguments": "}"}}]},
]
SORTED_MESSAGE = {
    "content": "Two calls.",
    "reasoning": "Let me see.",
    "tool_calls": [
        {"id": "c0", "type": "function", "function": {"name": "ping", "arguments": "{}"}},
        {"id": "c1", "type": "function", "function": {"name": "get_tide", "arguments": "{}"}},
    ],
}


@pytest.mark.parametrize("parser", ["hermes", None])
def test_what_the_upstream_sorted_is_taken_as_it_is(driver, chat, trays_of, parser) -> None:
    settings = Settings(tool_parser=parser, responses="translate")
    events = [chat.event(delta) for delta in SORTED_DELTAS]
    streamed = driver.stream(settings, [*events, chat.event({}, "tool_calls"), DONE]).check().response
    whole = driver.whole(settings, chat.whole(SORTED_MESSAGE, "tool_calls"))
    for response in (streamed, whole):
        expected = ("Let me see.", "Two calls.", [("ping", "{}"), ("get_tide", "{}")])
        assert trays_of(response["output"]) == expected
        assert [item["call_id"] for item in response["output"][2:]] == ["c0", "c1"]
        assert {item["status"] for item in response["output"]} == {"completed"}


def test_text_before_what_the_upstream_sorts_is_ours(driver, chat, plain, trays_of) -> None:
    """A call of ours that broke off there keeps its place, though the upstream counts its own from 0 as well."""
    ours = CUT
    theirs = [chat.event(delta) for delta in SORTED_DELTAS[-4:]]
    streamed = driver.stream(
        plain, [chat.event({"content": ours}), *theirs, chat.event({}, "tool_calls"), DONE]
    ).check()
    expected = [("ping", "{}"), ("get_tide", '{"p'), ("ping", "{}"), ("get_tide", "{}")]
    assert trays_of(streamed.response["output"]) == (None, None, expected)
    statuses = [item["status"] for item in streamed.response["output"]]
    assert statuses == ["completed", "incomplete", "completed", "completed"]


def test_in_shadow_mode_the_upstreams_own_sorting_is_translated(driver, chat, trays_of) -> None:
    settings = Settings(tool_parser="hermes", responses="translate", shadow=True)
    events = [chat.event(delta) for delta in SORTED_DELTAS]
    streamed = driver.stream(settings, [*events, chat.event({}, "tool_calls"), DONE]).check()
    expected = ("Let me see.", "Two calls.", [("ping", "{}"), ("get_tide", "{}")])
    assert trays_of(streamed.response["output"]) == expected


async def without_calls(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        if isinstance(event, Content):
            yield Content(event.text.upper())
        elif isinstance(event, Reasoning):
            yield event


def test_stages_run_after_the_parser(driver, chat, parsers, raw, trays_of) -> None:
    settings = Settings(**parsers, responses="translate", stages=[without_calls])
    expected = (ANSWER[0], ANSWER[1].upper(), [])
    assert trays_of(driver.stream(settings, chat.reply(raw)).check().response["output"]) == expected
    assert trays_of(driver.whole(settings, chat.whole({"content": raw}))["output"]) == expected


@pytest.mark.parametrize("size", [1, 50])
def test_what_waits_too_long_is_text(driver, chat, size, trays_of) -> None:
    settings = Settings(tool_parser="hermes", responses="translate", max_held=100)
    raw = "<tool_call>" + "x" * 300 + CUT
    streamed = driver.stream(settings, chat.reply(raw.replace("x", " "), size)).check()
    assert trays_of(streamed.response["output"])[2] == []
    assert "get_tide" in trays_of(streamed.response["output"])[1]


def test_a_completion_of_a_rendered_prompt_is_a_response_too(driver, parsers, raw, trays_of) -> None:
    def renderer(request: Mapping[str, object]) -> SimpleNamespace:
        return SimpleNamespace(text="prompt", tail="")

    def completion(text: str, finish: str | None) -> bytes:
        choice = {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}
        body = {"id": "cmpl-1", "object": "text_completion", "created": 17, "model": "m", "choices": [choice]}
        return json.dumps(body).encode()

    settings = Settings(**parsers, render_prompt=renderer)
    events = [b"data: %b\n\n" % completion(piece, None) for piece in raw]
    streamed = driver.stream(settings, [*events, b"data: %b\n\n" % completion("", "stop"), DONE]).check()
    assert trays_of(streamed.response["output"]) == ANSWER
    assert trays_of(driver.whole(settings, completion(raw, "stop"))["output"]) == ANSWER


def test_a_refusal_is_a_part_of_its_kind(driver, chat, translating) -> None:
    streamed = driver.stream(
        translating, [chat.event({"refusal": "I can"}), chat.event({"refusal": "not."}), chat.event({}, "stop"), DONE]
    ).check()
    assert streamed.response["output"][0]["content"] == [{"type": "refusal", "refusal": "I cannot."}]


def test_logprobs_go_with_their_text(driver, chat, translating) -> None:
    def token(text: str) -> bytes:
        tops = [{"token": text, "logprob": -0.5, "bytes": list(text.encode())}]
        entry = {"token": text, "logprob": -0.5, "bytes": list(text.encode()), "top_logprobs": tops}
        return chat.event(None, choices=[{"index": 0, "delta": {"content": text}, "logprobs": {"content": [entry]}}])

    tokens = ["<think>", "Hm", "</think>", "Hello", " there"]
    request = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
    streamed = driver.stream(translating, [*map(token, tokens), chat.event({}, "stop"), DONE], request).check()
    part = streamed.response["output"][1]["content"][0]
    assert [entry["token"] for entry in part["logprobs"]] == ["Hello", " there"]
    deltas = [event for event in streamed.events if event["type"] == "response.output_text.delta"]
    top = [{"token": "Hello", "logprob": -0.5}]
    assert deltas[0]["logprobs"] == [{"token": "Hello", "logprob": -0.5, "top_logprobs": top}]
    assert "Hm" not in json.dumps(deltas)


DONE = b"data: [DONE]\n\n"
HELD = "Hello <tool_ca"  # `<tool_ca` waits for what it is to be


# what the upstream sends after some text, the message of the error
FAULTS: list[tuple[list[bytes], str]] = [
    ([b'data: {"error": {"message": "no memory", "code": "oom"}}\n\n', DONE], "no memory"),
    ([b'event: error\ndata: {"message": "no memory"}\n\n'], "no memory"),
    ([b'data: {"error": "no memory"}\n\n'], "no memory"),
    ([b"data: {not json\n\n", DONE], "cannot be read"),
    ([b"data: [1]\n\n"], "cannot be read"),
    ([DONE], "without a finish reason"),
    ([], "without a finish reason"),
    ([b'data: {"choices": [{"index": 0, "del'], "cannot be read"),
]


@pytest.mark.parametrize(("events", "message"), FAULTS)
def test_a_stream_that_breaks_off_fails_after_its_text(driver, chat, plain, trays_of, events, message) -> None:
    streamed = driver.stream(plain, [chat.event({"content": HELD}), *events]).check()
    assert streamed.events[-1]["type"] == "response.failed"
    assert message in streamed.response["error"]["message"]
    assert trays_of(streamed.response["output"])[1] == HELD
    assert streamed.response["output"][0]["status"] == "incomplete"
    said = [event for event in streamed.events if event["type"] == "error"]
    assert bool(said) == ("finish reason" not in message)
    assert all(message in event["message"] for event in said)


def test_a_broken_body_fails_and_only_once(driver, chat, translating) -> None:
    async def broken(*events: bytes) -> bytes:
        exchange = driver.exchange(translating, {"stream": True})
        exchange.start(200, [(b"content-type", b"text/event-stream")])
        out = b"".join([await exchange.feed(event) for event in events])
        return out + await exchange.break_off() + await exchange.close()

    assert run(broken(chat.event({"content": "Hi"}))).count(b"event: response.failed") == 1
    assert run(broken(*chat.reply("Hi"))).count(b"event: response.failed") == 0
    assert run(broken()).count(b"event: response.created") == 1
    finished = run(broken(*chat.reply("Hi")[:-2]))
    assert finished.count(b"event: response.completed") == 1
    assert finished.count(b"event: response.failed") == 0


def test_an_event_over_the_limit_fails(driver, chat, parsers) -> None:
    settings = Settings(**parsers, responses="translate", max_body=2000)
    long = chat.event({"content": "x" * 4000})
    streamed = driver.stream(settings, [chat.event({"content": "Hi"}), long[:3000], long[3000:]]).check()
    assert "max_body" in streamed.response["error"]["message"]


def test_comments_pass_and_other_choices_do_not(driver, chat, plain, trays_of) -> None:
    second = chat.event(None, choices=[{"index": 1, "delta": {"content": "other"}, "finish_reason": None}])
    sent = driver.stream(plain, [b": ping\n\n", chat.event({"content": "Hi"}), second, *chat.reply("!")[1:]])
    assert sent.sent[0].startswith(b": ping")
    assert trays_of(sent.check().response["output"])[1] == "Hi!"


NOT_COMPLETIONS = [b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"text": "x"}]}', b"not json", b'{"error": {}}']


@pytest.mark.parametrize("body", NOT_COMPLETIONS)
def test_a_body_that_is_no_completion_stays(driver, translating, body) -> None:
    sent = driver.whole(translating, body)
    assert sent == body or sent == json.loads(body)


def test_an_error_of_the_upstream_is_not_touched(driver, translating) -> None:
    exchange = driver.exchange(translating)
    headers = [(b"content-type", b"application/json"), (b"retry-after", b"3")]
    assert exchange.start(429, headers) == headers
    assert run(exchange.feed(b'{"error": {"message": "busy"}}')) == b'{"error": {"message": "busy"}}'


def test_an_empty_reply_has_no_items(driver, chat, translating) -> None:
    assert driver.stream(translating, chat.reply("")).check().response["output"] == []
    assert driver.whole(translating, chat.whole({"content": None}))["output"] == []


def test_half_characters_are_joined(driver, chat, plain, trays_of) -> None:
    events = [b'data: {"choices": [{"index": 0, "delta": {"content": "%b"}}]}\n\n' % half for half in HALVES]
    streamed = driver.stream(plain, [*events, chat.event({}, "stop"), DONE]).check()
    assert trays_of(streamed.response["output"])[1] == "a😀b"


HALVES = [b"a\\ud83d", b"\\ude00b"]
