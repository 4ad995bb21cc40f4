"""Promptness at raw ASGI: which `send` of the app made which `send` of ours, without a clock."""

from __future__ import annotations

import json

import pytest

from streamsieve.middleware import SieveMiddleware

CLOSER = "</tool_call>"


@pytest.fixture
def caused(chat, chunk):
    """What each text delta of a reply made leave: one list of sent bodies a delta."""

    async def run(sieve_of, deltas):
        sent: list[list[bytes]] = []

        async def app(scope, receive, send):
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for delta in deltas:
                sent.append([])
                await send({"type": "http.response.body", "body": chunk(delta), "more_body": True})
            sent.append([])
            await send({"type": "http.response.body", "body": chunk(finish="stop") + b"data: [DONE]\n\n"})

        async def receive():
            return {"type": "http.request", "body": chat(), "more_body": False}

        async def send(message):
            if message["type"] == "http.response.body":
                sent[-1].append(message["body"])

        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
        await sieve_of(app)(scope, receive, send)
        return sent

    return run


def trays(bodies: list[bytes]) -> str:
    """The text of every tray in the events of these bodies, in order."""
    text = ""
    for line in b"".join(bodies).decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line.removeprefix("data: "))["choices"]:
            delta = choice["delta"]
            text += delta.get("reasoning", "") + (delta.get("content") or "")
            text += "".join(call["function"].get("arguments") or "" for call in delta.get("tool_calls", ()))
    return text


@pytest.mark.parametrize(
    ("deltas", "texts"),
    [
        (["Plain", " text", ", and more."], ["Plain", " text", ", and more."]),
        (["a", " ", "b"], ["a", "", " b"]),  # white space before a call would not be content: contract, rule 4
        (["a < b", " and c"], ["a < b", " and c"]),
        (["a <", "b"], ["a", " <b"]),
        (["x <tool_", "cal", "led>"], ["x", "", " <tool_called>"]),
        (["Größe", " 😀"], ["Größe", " 😀"]),
    ],
    ids=str,
)
async def test_a_delta_without_a_possible_marker_leaves_in_the_send_it_came_in(deltas, texts, caused):
    sent = await caused(lambda app: SieveMiddleware(app, tool_parser="hermes"), deltas)
    assert [trays(bodies) for bodies in sent[:-1]] == texts
    assert [len(bodies) for bodies in sent[:-1]] == [1 if text else 0 for text in texts]


async def test_a_delta_that_is_only_a_marker_sends_nothing(caused, parsers):
    deltas = ["<think>", "Hm.", "</think>", "\n\n", "Yes.", "\n", "<tool_call>", "\n"]
    sent = await caused(lambda app: SieveMiddleware(app, **parsers), deltas)
    assert [trays(bodies) for bodies in sent[:-1]] == ["", "Hm.", "", "", "Yes.", "", "", ""]
    assert [len(bodies) for bodies in sent[:-1]] == [0, 1, 0, 0, 1, 0, 0, 0]


async def test_string_arguments_follow_the_text_by_no_more_than_a_closing_marker(caused):
    """A 4 kB value that talks about the markers, in pieces of 7 characters."""
    value = "line one\nThe </tool_call> of a <tool_call>, and </think>. " * 70
    arguments = json.dumps({"port": value}, ensure_ascii=False)
    reply = '<tool_call>\n{"name": "get_tide", "arguments": ' + arguments + "}\n" + CLOSER
    began = reply.index(arguments)
    deltas = [reply[start : start + 7] for start in range(0, len(reply), 7)]
    sent = await caused(lambda app: SieveMiddleware(app, tool_parser="hermes"), deltas)
    written = out = 0
    lags = []
    for delta, bodies in zip(deltas, sent, strict=False):
        written += len(delta)
        out += len(trays(bodies))
        if began + len('{"port": "') < written < began + len(arguments):
            lags.append(written - began - out)
    assert len(lags) > 500
    assert max(lags) <= len(CLOSER)


async def test_one_send_in_is_at_most_one_send_out(caused, chunk, parsers):
    deltas = ["<think>a</think>b <tool_call>", '{"name": "get_tide", "arguments": {}}</tool_call>c<tool_call>', "d"]
    sent = await caused(lambda app: SieveMiddleware(app, **parsers), deltas)
    assert max(map(len, sent)) == 1


async def test_a_comment_is_forwarded_at_once(call, engine, chat, chunk, parsers):
    app = engine(bodies=[chunk("<think>"), b": ping\n\n", chunk("x"), b"data: [DONE]\n\n"])
    client = await call(SieveMiddleware(app, **parsers), chat())
    assert client.sent[1]["body"].startswith(b": ping\n")


async def test_an_empty_body_that_flushes_the_headers_is_forwarded(call, engine, chat, chunk, parsers):
    app = engine(bodies=[b"", chunk("<think>"), b"data: [DONE]\n\n"])
    client = await call(SieveMiddleware(app, **parsers), chat())
    assert client.sent[1] == {"type": "http.response.body", "body": b"", "more_body": True}


@pytest.mark.parametrize("last", [b"", b": ping"])
async def test_the_end_lets_out_what_was_held_and_ends_the_response(last, call, engine, chat, chunk, parsers):
    """A stream without a finish and `[DONE]`, whose last bytes make no event: it broke off."""
    app = engine(bodies=[chunk("<think>a</think>b"), chunk(" <tool_ca"), last])
    client = await call(SieveMiddleware(app, **parsers), chat())
    *told, error = client.events
    assert "".join(event["choices"][0]["delta"].get("content") or "" for event in told) == "b <tool_ca"
    assert error["error"]["code"] == "reply_broke_off"
    assert client.sent[-1]["more_body"] is False


async def test_a_last_message_that_holds_only_a_marker_ends_the_response(call, engine, chat, chunk, parsers):
    client = await call(SieveMiddleware(engine(bodies=[chunk("<think>")]), **parsers), chat())
    assert client.sent[-1]["more_body"] is False
