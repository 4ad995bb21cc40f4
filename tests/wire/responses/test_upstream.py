"""An upstream that speaks the Responses API and leaves the model's raw text in its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamsieve.parsers.chain import run
from streamsieve.wire.settings import Settings

ANSWER = ("The tide — I look.", "One moment. 😀", [("get_tide", '{"port": "Bodø", "days": 2}')])
INCOMPLETE = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


def test_a_stream_and_a_whole_reply_end_in_the_same_output(driver, upstream, parsing, raw, trays_of) -> None:
    streamed = driver.stream(parsing, upstream.reply(raw)).check().response
    whole = driver.whole(parsing, upstream.whole([upstream.message(raw)]))
    assert trays_of(streamed["output"]) == trays_of(whole["output"]) == ANSWER
    for item in [*streamed.pop("output"), *whole.pop("output")]:
        assert item["status"] == "completed"
    assert streamed == whole


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_pieces_do_not_show(driver, upstream, parsing, raw, trays_of, size) -> None:
    assert trays_of(driver.stream(parsing, upstream.reply(raw, size)).check().response["output"]) == ANSWER


def test_the_bytes_may_be_cut_anywhere(driver, upstream, parsing, raw) -> None:
    body = b"".join(upstream.reply(raw, 12))
    expected = driver.stream(parsing, [body]).nameless
    assert driver.stream(parsing, [body[place : place + 1] for place in range(len(body))]).nameless == expected
    for cut in range(0, len(body), 11):
        assert driver.stream(parsing, [body[:cut], body[cut:]]).nameless == expected


CUT = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "get_tide", "arguments": {"p'


@pytest.mark.parametrize("kind", ["response.incomplete", "response.completed"])
def test_a_reply_that_was_cut(driver, upstream, parsing, trays_of, kind) -> None:
    *events, last = upstream.reply("<think></think>" + CUT, **INCOMPLETE)
    streamed = driver.stream(parsing, [*events, last.replace(b"response.completed", kind.encode())]).check()
    assert streamed.events[-1]["type"] == kind
    assert [item["status"] for item in streamed.response["output"]] == ["completed", "incomplete"]
    whole = driver.whole(parsing, upstream.whole([upstream.message("<think></think>" + CUT)], **INCOMPLETE))
    assert trays_of(streamed.response["output"]) == trays_of(whole["output"])
    assert trays_of(whole["output"])[2] == [("ping", "{}"), ("get_tide", '{"p')]


def test_a_reply_that_failed(driver, upstream, parsing, trays_of) -> None:
    *events, last = upstream.reply("Hmm <tool", status="failed", error={"code": "server_error", "message": "x"})
    failed = last.replace(b"response.completed", b"response.failed")
    error = b'event: error\ndata: {"type": "error", "message": "x", "sequence_number": 0}\n\n'
    before = driver.stream(parsing, [*events, error, failed]).check().response["output"]
    assert trays_of(before)[0] == "Hmm <tool"
    streamed = driver.stream(parsing, [*events, failed]).check()
    assert streamed.events[-1]["type"] == "response.failed"
    assert trays_of(streamed.response["output"])[0] == "Hmm <tool"


def item_events(index: int, item: dict[str, Any], *between: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}},
        *({"output_index": index, "item_id": item["id"], **event} for event in between),
        {"type": "response.output_item.done", "output_index": index, "item": {**item, "status": "completed"}},
    ]


def message_events(upstream, index: int, text: str) -> list[dict[str, Any]]:
    item = upstream.message(text)
    delta = {"type": "response.output_text.delta", "content_index": 0, "delta": text, "logprobs": []}
    first, *rest = item_events(index, item, delta)
    return [{**first, "item": {**item, "status": "in_progress", "content": []}}, *rest]


def response_events(upstream, *events: dict[str, Any]) -> list[bytes]:
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    return upstream.numbered(
        [
            {"type": "response.created", "response": upstream.whole([])},
            {"type": "response.in_progress", "response": upstream.whole([])},
            *events,
            {"type": "response.completed", "response": upstream.whole(done)},
        ]
    )


SEARCH = {"id": "ws_1", "type": "web_search_call", "action": {"type": "search", "query": "q"}}
FOUND = {"type": "response.web_search_call.searching"}
CALL = {"id": "fc_u", "type": "function_call", "call_id": "c", "name": "ping", "arguments": "{}"}
ARGUMENTS = {"type": "response.function_call_arguments.delta", "delta": "{}"}
REASONING = {
    "id": "rs_u",
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "<think>"}],
}
THINKING = {"type": "response.reasoning_text.delta", "content_index": 0, "delta": "<think>"}


def test_items_of_the_upstream_stand_among_ours(driver, upstream, parsing, raw, trays_of) -> None:
    events = [
        *item_events(0, SEARCH, FOUND),
        *message_events(upstream, 1, raw),
        *item_events(2, SEARCH | {"id": "ws_2"}, FOUND),
        *message_events(upstream, 3, raw),
    ]
    streamed = driver.stream(parsing, response_events(upstream, *events))
    kinds = [item["type"] for item in streamed.response["output"]]
    three = ["reasoning", "message", "function_call"]
    assert kinds == ["web_search_call", *three, "web_search_call", *three]
    assert [event["output_index"] for event in streamed.events if "searching" in event["type"]] == [0, 4]
    assert [event["sequence_number"] for event in streamed.events] == list(range(len(streamed.events)))
    assert trays_of(streamed.response["output"])[2] == ANSWER[2] * 2
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    whole = driver.whole(parsing, upstream.whole(items))
    assert [item["type"] for item in whole["output"]] == kinds


@pytest.mark.parametrize(("item", "delta"), [(CALL, ARGUMENTS), (REASONING, THINKING)])
def test_what_the_upstream_sorts_is_not_sorted_again(driver, upstream, parsing, raw, item, delta) -> None:
    events = response_events(upstream, *item_events(0, item, delta), *message_events(upstream, 1, raw))
    assert driver.stream(parsing, events).body == b"".join(events)
    body = upstream.whole([item, upstream.message(raw)])
    assert driver.whole(parsing, body) == body


def test_text_before_its_first_call_is_ours(driver, upstream, parsing, trays_of) -> None:
    text = message_events(upstream, 0, "Hm.</think>Hello <tool")
    streamed = driver.stream(parsing, response_events(upstream, *text, *item_events(1, CALL, ARGUMENTS)))
    assert trays_of(streamed.response["output"]) == ("Hm.", "Hello <tool", [("ping", "{}")])


def test_without_a_parser_everything_stays(driver, upstream, raw) -> None:
    events = upstream.reply(raw)
    assert driver.stream(Settings(), events).body == b"".join(events)
    assert driver.whole(Settings(), upstream.whole([upstream.message(raw)])) == upstream.whole([upstream.message(raw)])


@pytest.mark.parametrize("parser", ["qwen3", None])
def test_no_reasoning_where_none_is_wanted(driver, upstream, trays_of, parser) -> None:
    settings = Settings(reasoning_parser=parser)
    events = [*item_events(0, REASONING, THINKING), *message_events(upstream, 1, "Hello")]
    request = {"include_reasoning": False}
    streamed = driver.stream(settings, response_events(upstream, *events), request)
    assert [item["type"] for item in streamed.response["output"]] == ["message"]
    assert b"reasoning_text" not in streamed.body
    assert {event["output_index"] for event in streamed.events if "output_index" in event} == {0}
    whole = driver.whole(settings, upstream.whole([REASONING, upstream.message("Hello")]), request)
    assert whole["output"] == [upstream.message("Hello")]


def test_reasoning_goes_where_the_client_looks(driver, upstream, parsing, raw) -> None:
    streamed = driver.stream(parsing, upstream.reply(raw), {"reasoning": {"summary": "auto"}}).check()
    assert streamed.response["output"][0]["summary"] == [{"type": "summary_text", "text": ANSWER[0]}]


def test_a_response_without_deltas_is_sorted_at_its_end(driver, upstream, parsing, raw, trays_of) -> None:
    streamed = driver.stream(parsing, [*upstream.reply(raw)[:2], upstream.reply(raw)[-1]]).check()
    assert trays_of(streamed.response["output"]) == ANSWER


def test_deltas_without_an_item_are_a_message(driver, upstream, parsing, raw, trays_of) -> None:
    events = [event for event in upstream.reply(raw) if b"output_item" not in event and b"content_part" not in event]
    assert trays_of(driver.stream(parsing, events).check().response["output"]) == ANSWER


HELD = "<think></think>Hello <tool_ca"


@pytest.mark.parametrize("end", [[], [b"data: [DONE]\n\n"], [b"event: response.compl"]])
def test_a_stream_that_just_ends_gives_out_what_is_held(driver, upstream, parsing, end) -> None:
    streamed = driver.stream(parsing, [*upstream.reply(HELD)[:-4], *end])
    deltas = [event["delta"] for event in streamed.events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == "Hello <tool_ca"
    is_done = b"[DONE]" in b"".join(end)
    assert streamed.events[-1]["type"] == ("response.output_text.delta" if is_done else "error")
    assert streamed.body.endswith(b"data: [DONE]\n\n" if is_done else b"\n\n")


def test_what_a_whole_response_ends_in_passes_as_it_is(driver, upstream, parsing) -> None:
    assert driver.stream(parsing, [*upstream.reply(HELD), b"event: x"]).body.endswith(b"\n\nevent: x")


def test_an_error_event_comes_after_what_is_held(driver, upstream, parsing) -> None:
    error = {"type": "error", "message": "no memory", "code": None, "param": None, "sequence_number": 90}
    event = b"event: error\ndata: %b\n\n" % json.dumps(error).encode()
    streamed = driver.stream(parsing, [*upstream.reply(HELD)[:-4], event])
    assert [one["type"] for one in streamed.events[-2:]] == ["response.output_text.delta", "error"]
    assert streamed.events[-1] == error | {"sequence_number": len(streamed.events) - 1}


def test_a_broken_body_ends_in_an_error_event(driver, upstream, parsing) -> None:
    async def broken(events: list[bytes]) -> bytes:
        exchange = driver.exchange(parsing, {"stream": True})
        exchange.start(200, [(b"content-type", b"text/event-stream")])
        out = b"".join([await exchange.feed(event) for event in events])
        return out + await exchange.break_off() + await exchange.close()

    events = upstream.reply(HELD)
    assert run(broken(events[:-4])).count(b"event: error") == 1
    assert run(broken(events)).count(b"event: error") == 0


def test_text_after_the_end_of_its_message_is_nobodys(driver, upstream, parsing) -> None:
    events = upstream.reply("<think></think>Hello")
    streamed = driver.stream(parsing, [*events, events[4]])
    assert streamed.response["status"] == "completed"


@pytest.mark.parametrize("data", [b"data: [1]\n\n", b"data: {no\n\n", b": ping\n\n", b'data: {"a": 1}\n\n'])
def test_what_is_none_of_ours_passes(driver, upstream, parsing, data) -> None:
    assert driver.stream(parsing, [data]).body.startswith(data[:-3])


def test_a_body_that_is_no_response_stays(driver, parsing) -> None:
    for body in (b"[]", b"not json", b'{"output": "x"}'):
        assert driver.whole(parsing, body) in (body, json.loads(body) if body != b"not json" else body)


def test_calls_are_parsed_by_the_request(driver, upstream, parsing, raw, trays_of) -> None:
    for request in ({"tools": []}, {"tool_choice": "none"}, {"tools": [{"type": "web_search"}]}):
        output = driver.stream(parsing, upstream.reply(raw), request).check().response["output"]
        assert trays_of(output)[2] == []


def test_logprobs_go_with_their_text(driver, upstream, parsing) -> None:
    def delta(text: str) -> dict[str, Any]:
        entry = {"token": text, "logprob": -0.5, "top_logprobs": []}
        where = {"output_index": 0, "item_id": "msg_u", "content_index": 0}
        return {"type": "response.output_text.delta", **where, "delta": text, "logprobs": [entry]}

    first, *_, done = message_events(upstream, 0, "x")
    texts = [delta(text) for text in ("<think>", "Hm", "</think>", "Hello", " there")]
    streamed = driver.stream(parsing, response_events(upstream, first, *texts, done)).check()
    part = streamed.response["output"][1]["content"][0]
    assert [entry["token"] for entry in part["logprobs"]] == ["Hello", " there"]
