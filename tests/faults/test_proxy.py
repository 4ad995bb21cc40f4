"""What a client of the proxy hears when the upstream fails, over real sockets; and what is left when clients leave."""

from __future__ import annotations

import json
import resource
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from streamsieve.backends.application import application
from streamsieve.backends.upstream import Upstream
from streamsieve.wire.settings import Settings

CHAT = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "Hello"}],
    "tools": [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}],
}
BROKE_OFF = "error reply_broke_off"


@dataclass
class Answer:
    """A response as it came, and whether its end came too."""

    status: int
    headers: httpx2.Headers
    body: bytes = b""
    is_complete: bool = False

    @property
    def told(self) -> list[str]:
        """Each event in short; what a line holds that is no JSON is itself."""
        return [_short(line[6:]) for line in self.body.decode(errors="replace").split("\n") if line[:6] == "data: "]


def _short(data: str) -> str:
    try:
        event = json.loads(data)
    except ValueError:
        return data
    if "error" in event:
        return f"error {event['error']['code']}"
    choice = event["choices"][0]
    return choice["finish_reason"] or " ".join(f"{name} {text}" for name, text in choice["delta"].items())


def ask(url: str, **more: object) -> Answer:
    with httpx2.stream("POST", url + "/v1/chat/completions", json={**CHAT, **more}, timeout=30) as response:
        answer = Answer(response.status_code, response.headers)
        with suppress(httpx2.RemoteProtocolError):
            for piece in response.iter_raw():
                answer.body += piece
            answer.is_complete = True
    return answer


@pytest.fixture
def proxy(serve: Any, parsers: Any, patience: float) -> Callable[..., str]:
    """The URL of a proxy before an upstream."""

    def started(upstream: Any, **options: Any) -> str:
        source = Upstream(serve(upstream), read_timeout=patience)
        return str(serve(application(source, Settings(**parsers, **options))))

    return started


HM = "role assistant reasoning Hm"


@pytest.mark.parametrize(
    ("fault", "told", "is_complete"),
    [
        ("dies between events", [HM, BROKE_OFF], False),
        ("dies in an event", [HM, BROKE_OFF], False),
        ("dies in a character", [HM, BROKE_OFF], False),
        ("dies before its [DONE]", [HM, "reasoning .", "content Hi", "stop", BROKE_OFF], False),
        ("ends in a character", [HM, BROKE_OFF], True),
        ("is silent in its answer", [HM, BROKE_OFF], False),
        ("sends what is no JSON", [HM, '{"choices": [}', "reasoning .", "content Hi", "stop", "[DONE]"], True),
        ("sends an error event", [HM, "error oom", "[DONE]"], True),
    ],
)
def test_a_stream_ends_as_it_should_or_says_that_it_does_not(
    fault: str, told: list[str], is_complete: bool, failing: Any, proxy: Any
) -> None:
    answer = ask(proxy(failing(fault)))
    assert (answer.status, answer.told, answer.is_complete) == (200, told, is_complete)


@pytest.mark.parametrize("fault", ["answers with a page", "refuses with a page", "refuses for a time"])
def test_what_is_no_completion_passes_as_it_is(fault: str, failing: Any, proxy: Any) -> None:
    upstream = failing(fault)
    answer = ask(proxy(upstream))
    assert (answer.status, answer.body, answer.is_complete) == (upstream.status, b"".join(upstream.pieces), True)
    assert [(name, value) for name, value in answer.headers.raw if name in (b"content-type", b"retry-after")] == list(
        upstream.headers
    )


@pytest.mark.parametrize("stream", [True, False])
def test_an_upstream_that_never_answers(stream: bool, failing: Any, proxy: Any) -> None:
    answer = ask(proxy(failing("is silent before it")), stream=stream)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (504, "upstream_timeout")


@pytest.mark.parametrize("then", ["dies", "is silent"])
def test_a_whole_answer_that_breaks_off_is_an_error(then: str, upstream: Any, proxy: Any) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
    answer = ask(proxy(upstream([b'{"choices": ['], then, headers=headers)), stream=False)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (502, "upstream_broke_off")


def test_an_event_of_100_mb_passes_in_pieces(upstream: Any, event: Any, proxy: Any) -> None:
    """Neither parsed nor held: the memory that all three parties take stays far below its size."""
    head, tail = event("<think>|").split(b"|")
    million = b"x" * 1_000_000
    source = upstream([event("<think>Hm"), head, *[million] * 100, tail, event(".</think>Hi"), event(None, "stop")])
    url = proxy(source, max_body=1 << 20) + "/v1/chat/completions"
    before, length, last = peak(), 0, b""
    with httpx2.stream("POST", url, json=CHAT) as response:
        for piece in response.iter_raw():
            length += len(piece)
            last = (last + piece)[-1000:]
    assert length > 100 * len(million)
    assert b'"content":"Hi"' in last
    assert peak() - before < 60_000_000


def peak() -> int:
    """The most memory that this process ever took, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_a_client_may_leave_at_any_byte(upstream: Any, event: Any, proxy: Any) -> None:
    text = '<think>Hm.</think>I look.\n<tool_call>\n{"name": "get_tide", "arguments": {"port": "Bodø"}}\n</tool_call>'
    pieces = [event(text[at : at + 6]) for at in range(0, len(text), 6)]
    source = upstream([*pieces, event(None, "stop"), b"data: [DONE]\n\n"])
    url = proxy(source)
    whole = len(receive(url, 1_000_000))
    cuts = range(0, whole, 61)
    for cut in cuts:
        assert len(receive(url, cut)) <= cut
    assert receive(url, 1_000_000).endswith(b"0\r\n\r\n")
    deadline = time.monotonic() + 1
    while source.left < source.entered and time.monotonic() < deadline:
        time.sleep(0.01)
    assert source.left == source.entered > len(cuts)


def receive(url: str, most: int) -> bytes:
    """So many bytes of a response; then the client is gone."""
    body = json.dumps(CHAT).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    address = httpx2.URL(url)
    found = b""
    with socket.create_connection((address.host, address.port or 80), timeout=5) as connection:
        connection.sendall(head.encode() + body)
        while len(found) < most and (data := connection.recv(most - len(found))):
            found += data
    return found
