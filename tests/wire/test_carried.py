"""What a chunk or a stream carries beside the text: it goes out once, at once, and as it came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from streamsieve.wire.settings import Settings

ROLE = {"delta": {"role": "assistant"}}
PING = '<tool_call>{"name": "ping"}</tool_call>'
USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
LOGPROBS = {"content": [{"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}]}

# name, the choice fed after the role, its chunk's other fields, the (choices, other fields) that go out
CARRIED: list[tuple[str, dict[str, Any], dict[str, Any], list[tuple[dict[str, Any], dict[str, Any]]]]] = [
    ("a held text alone sends nothing", {"delta": {"content": "<tool"}}, {}, []),
    (
        "null fields beside it neither",
        {"delta": {"content": "<tool", "x": None}, "stop_reason": None},
        {"usage": None},
        [],
    ),
    ("logprobs of a held text wait with it", {"delta": {"content": "<tool"}, "logprobs": LOGPROBS}, {}, []),
    (
        "usage beside a held text",
        {"delta": {"content": "<tool"}},
        {"usage": USAGE},
        [({"delta": {}, "logprobs": None}, {"usage": USAGE})],
    ),
    (
        "an unknown field of the delta",
        {"delta": {"content": "<tool", "audio": {"x": 1}}},
        {},
        [({"delta": {"audio": {"x": 1}}, "logprobs": None}, {})],
    ),
    (
        "an unknown field of the choice",
        {"delta": {"content": "<tool"}, "matched": 7},
        {},
        [({"delta": {}, "logprobs": None, "matched": 7}, {})],
    ),
    (
        "everything beside a text",
        {"delta": {"content": "a", "x": 1}, "logprobs": LOGPROBS, "y": 2},
        {"z": 3},
        [({"delta": {"content": "a", "x": 1}, "logprobs": LOGPROBS, "y": 2}, {"z": 3})],
    ),
    (
        "of several chunks, the first has what describes the text, the last has the rest",
        {
            "delta": {"content": f"a{PING}", "x": 1},
            "logprobs": LOGPROBS,
            "token_ids": [5],
            "y": 2,
            "finish_reason": "stop",
        },
        {"usage": USAGE, "system_fingerprint": "f"},
        [
            ({"delta": {"content": "a", "x": 1}, "logprobs": LOGPROBS, "token_ids": [5]}, {"system_fingerprint": "f"}),
            ({"delta": {"tool_calls": ["start"]}}, {"system_fingerprint": "f"}),
            ({"delta": {"tool_calls": ["arguments"]}}, {"system_fingerprint": "f"}),
            ({"delta": {}, "y": 2, "finish_reason": "tool_calls"}, {"usage": USAGE, "system_fingerprint": "f"}),
        ],
    ),
    (
        "usage that comes after the finish, in a choice",
        {"delta": {"content": ""}, "finish_reason": "stop"},
        {"usage": USAGE},
        [({"delta": {}, "logprobs": None, "finish_reason": "stop"}, {"usage": USAGE})],
    ),
]


@pytest.mark.parametrize(("choice", "top", "expected"), [pytest.param(*row[1:], id=row[0]) for row in CARRIED])
def test_what_is_carried_beside_the_text(driver: Any, choice: Any, top: Any, expected: Any) -> None:
    reply = driver.stream(Settings(tool_parser="hermes"), [ROLE, driver.event(choice, **top)])
    of_the_chunk = reply.sent[1].decode().split("\n\n")[:-1]
    chunks = [json.loads(event.removeprefix("data: ")) for event in of_the_chunk]
    assert chunks == [
        {
            "id": "c-1",
            "object": "chat.completion.chunk",
            "created": 17,
            "model": "m",
            **fields,
            "choices": [{"index": 0, "finish_reason": None, **choice, "delta": _calls(choice["delta"], chunk)}],
        }
        for (choice, fields), chunk in zip(expected, chunks, strict=True)
    ]


def _calls(delta: dict[str, Any], chunk: Any) -> dict[str, Any]:
    calls = chunk["choices"][0]["delta"].get("tool_calls")
    assert ("tool_calls" in delta) == bool(calls)
    return {**delta, "tool_calls": calls} if calls else delta


AFTER_THE_FINISH = [
    ("a second finish", {"finish_reason": "stop"}, {}, []),
    ("usage beside it", {"finish_reason": "stop"}, {"usage": USAGE}, [None]),
    ("a field beside it", {"finish_reason": "stop", "y": 1}, {}, [None]),
]


@pytest.mark.parametrize(("choice", "top", "reasons"), [pytest.param(*row[1:], id=row[0]) for row in AFTER_THE_FINISH])
def test_a_choice_finishes_once(driver: Any, choice: Any, top: Any, reasons: list[Any]) -> None:
    upstream = [ROLE, {"finish_reason": "stop"}, driver.event(choice, **top)]
    reply = driver.stream(Settings(tool_parser="hermes"), upstream)
    assert [reason for _, _, reason in reply.told] == [None, "stop", *reasons]


ERROR = b'data: {"error": {"message": "engine died", "code": 500}}\n\n'

# name, settings, an event that follows a held text, what the client gets for it (HELD: the text before it)
HELD = b"HELD"
UNTOUCHED: list[tuple[str, bytes, list[bytes]]] = [
    ("a comment", b": keep-alive\n", [b": keep-alive\n"]),
    ("a comment with CRLF", b": ping\r\n\r\n", [b": ping\r\n\r\n"]),
    ("an event without data", b"id: 7\nretry: 5\n\n", [b"id: 7\nretry: 5\n\n"]),
    ("an event of another kind", b'event: x\ndata: {"a": 1}\n\n', [b'event: x\ndata: {"a": 1}\n\n']),
    ("no JSON", b"data: hello\n\n", [b"data: hello\n\n"]),
    ("no UTF-8", b'data: {"choices": "\xff"}\n\n', [b'data: {"choices": "\xff"}\n\n']),
    ("no object", b"data: [1]\n\n", [b"data: [1]\n\n"]),
    (
        "usage",
        b'data: {"choices": [], "usage": {"n": 1e400}}\n\n',
        [b'data: {"choices": [], "usage": {"n": 1e400}}\n\n'],
    ),
    (
        "a completion",
        b'data: {"choices": [{"index": 0, "text": "a"}]}\n\n',
        [b'data: {"choices": [{"index": 0, "text": "a"}]}\n\n'],
    ),
    ("choices of no kind", b'data: {"choices": [3]}\n\n', [b'data: {"choices": [3]}\n\n']),
    (
        "an index of no kind",
        b'data: {"choices": [{"index": "0", "delta": {}}]}\n\n',
        [b'data: {"choices": [{"index": "0", "delta": {}}]}\n\n'],
    ),
    ("an error: what was held comes first", ERROR, [HELD, ERROR]),
    ("[DONE]: what was held comes first", b"data: [DONE]\n\n", [HELD, b"data: [DONE]\n\n"]),
    ("[DONE] with CRLF", b"data:[DONE]\r\n\r\n", [HELD, b"data:[DONE]\r\n\r\n"]),
]


@pytest.mark.parametrize(("event", "expected"), [pytest.param(*row[1:], id=row[0]) for row in UNTOUCHED])
def test_events_that_are_not_ours_to_read(driver: Any, event: bytes, expected: list[bytes]) -> None:
    upstream = [ROLE, {"delta": {"content": "<tool"}}, event, b"data: [DONE]\n\n"]
    reply = driver.stream(Settings(tool_parser="hermes"), upstream)
    rest = [] if HELD in expected else [HELD]
    rest += [] if b"DONE" in event else [b"data: [DONE]\n\n"]
    held = driver.event({"delta": {"content": "<tool"}}).replace(b'"logprobs":null,', b"")
    assert b"".join(reply.sent[1:]) == b"".join(held if piece == HELD else piece for piece in expected + rest)


def test_an_error_beside_choices_leaves_with_the_last_chunk_made_of_them(driver: Any) -> None:
    event = driver.event({"delta": {"content": "a"}, "finish_reason": "error"}, error={"message": "m"})
    reply = driver.stream(Settings(tool_parser="hermes"), [ROLE, {"delta": {"content": "<tool"}}, event])
    assert [(chunk["choices"][0]["finish_reason"], "error" in chunk) for chunk in reply.chunks[1:]] == [
        (None, False),
        ("error", True),
    ]


def test_other_lines_of_an_event_go_with_each_event_made_of_it(driver: Any) -> None:
    event = driver.event({"delta": {"content": f"a{PING}"}})
    upstream = [ROLE, b"id: 7\nevent: m\n" + event, b"id: 8\n" + driver.event({"delta": {"content": "<tool"}})]
    reply = driver.stream(Settings(tool_parser="hermes"), upstream)
    assert reply.sent[1].count(b"id: 7\nevent: m\ndata: {") == 3
    assert reply.sent[2] == b""


def several(texts: Sequence[str | None], **top: object) -> bytes:
    """One chunk with a choice for each text; None has a role instead."""
    deltas = [{"role": "assistant"} if text is None else {"content": text} for text in texts]
    choices = [{"index": index, "delta": delta, "finish_reason": None} for index, delta in enumerate(deltas)]
    return b"data: %b\n\n" % json.dumps({"id": "c", "choices": choices, **top}, separators=(",", ":")).encode()


SEVERAL: list[tuple[str, list[bytes], list[tuple[Any, dict[str, Any]]]]] = [
    (
        "each in a chunk of its own, usage with the last",
        [several(["a", "<tool", "c"], usage=USAGE)],
        [
            (None, {"role": "assistant", "content": "a"}),
            (None, {"role": "assistant"}),
            (USAGE, {"role": "assistant", "content": "c"}),
        ],
    ),
    (
        "a held one has none",
        [several([None, None]), several(["<tool", "b"], usage=USAGE)],
        [(None, {"role": "assistant"}), (None, {"role": "assistant"}), (USAGE, {"content": "b"})],
    ),
    (
        "usage has one where all are held",
        [several([None, None]), several(["<tool", "<tool"], usage=USAGE)],
        [(None, {"role": "assistant"}), (None, {"role": "assistant"}), (USAGE, {})],
    ),
]


@pytest.mark.parametrize(("upstream", "expected"), [pytest.param(*row[1:], id=row[0]) for row in SEVERAL])
def test_several_choices_in_one_chunk(driver: Any, upstream: list[bytes], expected: list[Any]) -> None:
    reply = driver.stream(Settings(tool_parser="hermes"), upstream, {"n": 3})
    told = [(chunk.get("usage"), choice["delta"]) for chunk in reply.chunks for choice in chunk["choices"]]
    assert told[: len(expected)] == expected
    assert reply.sent[0] == upstream[0] or len(upstream) == 1


def test_what_was_held_goes_out_without_what_was_said_before(driver: Any) -> None:
    last = driver.event({"delta": {"content": "<tool"}, "y": 1}, z=2, system_fingerprint="f")
    held = driver.stream(Settings(tool_parser="hermes"), [ROLE, last]).chunks[-1]
    assert held == {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 17,
        "model": "m",
        "system_fingerprint": "f",
        "choices": [{"index": 0, "delta": {"content": "<tool"}, "finish_reason": None}],
    }


END_OF_BODY: list[tuple[str, bytes, bytes]] = [
    (
        "a whole event without its blank line is read",
        b'data: {"choices":[{"delta":{"content":"b"}}]}',
        b'"content":"<toolb"',
    ),
    ("with one of its line ends", b'data: {"choices":[{"delta":{"content":"b"}}]}\r\n', b'"content":"<toolb"'),
    ("[DONE] is completed", b"data: [DONE]", b"data: [DONE]\n\n"),
    ("[DONE] with one line end", b"data: [DONE]\n", b"data: [DONE]\n\n"),
    ("half an event is dropped where the reply broke off", b'data: {"choices":[{"de', b'"<tool"'),
    ("half a comment too", b": pi", b'"<tool"'),
]


@pytest.mark.parametrize(("end", "expected"), [pytest.param(*row[1:], id=row[0]) for row in END_OF_BODY])
def test_what_a_body_ends_in(driver: Any, end: bytes, expected: bytes) -> None:
    reply = driver.stream(Settings(tool_parser="hermes"), [ROLE, {"delta": {"content": "<tool"}}, end])
    assert reply.sent[:-1] == [driver.event(ROLE), b"", b""]
    assert b"<tool" in reply.sent[-1]
    assert expected in reply.sent[-1]
    assert reply.sent[-1].endswith(b"\n\n")
    assert reply.error == (None if b"[DONE]" in end else "reply_broke_off")
    assert end not in reply.sent[-1] or expected.startswith(end)


@pytest.mark.parametrize("end", [b'data: {"choices":[{"de', b": pi"])
def test_what_a_whole_reply_ends_in_passes_as_it_is(driver: Any, end: bytes) -> None:
    reply = driver.stream(Settings(tool_parser="hermes"), [ROLE, {"finish_reason": "stop"}, end])
    assert reply.sent[-1] == end


def test_every_cut_of_a_body_gives_the_same(driver: Any) -> None:
    upstream = b"".join(
        [
            b"\xef\xbb\xbf: hello\r\n\r\n",
            driver.event({"delta": {"role": "assistant", "content": ""}}),
            driver.event({"delta": {"content": "Bodø \N{GRINNING FACE}\u2028\u0085 <to"}}),
            driver.event({"delta": {"content": f"ol> {PING} b"}, "finish_reason": "stop"}).replace(
                b"\n\n", b"\r\n\r\n"
            ),
            b'data: {"choices":[],\ndata: "usage":{"n":1}}\n\n',
            b"data: [DONE]\r\r",
        ]
    )
    settings = Settings(tool_parser="hermes")

    def told(pieces: list[bytes]) -> Any:
        reply = driver.stream(settings, pieces)
        return reply.told, reply.body.count(b": hello\r\n"), reply.body.count(b"[DONE]")

    whole = told([upstream])
    assert [finish for _, _, finish in whole[0]].count("tool_calls") == 1
    for cut in range(len(upstream)):
        assert told([upstream[:cut], upstream[cut:]]) == whole, cut
    assert told([bytes([byte]) for byte in upstream]) == whole
    for size in (2, 3, 7, 100):
        assert told([upstream[start : start + size] for start in range(0, len(upstream), size)]) == whole, size
