"""What the wrapped client makes of an upstream that fails: what the plain one makes of it, the trays apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest

from streamsieve.sdk_patch import reasoning, wrap

ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
FAULTS = [
    "dies between events",
    "dies in an event",
    "dies in a character",
    "dies before its [DONE]",
    "sends what is no JSON",
    "sends an error event",
    "is silent in its answer",
    "is silent before it",
    "refuses with a page",
    "refuses for a time",
]


def outcome(client: openai.OpenAI, read: Callable[[Any], None]) -> type[Exception] | None:
    try:
        for part in client.chat.completions.create(**ASKED, stream=True):
            read(part)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("fault", FAULTS)
def test_the_outcome_is_that_of_the_plain_client(
    fault: str, failing: Any, serve: Any, parsers: Any, patience: float
) -> None:
    upstream = failing(fault)
    thought: list[str | None] = []
    with openai.OpenAI(base_url=serve(upstream), api_key="k", max_retries=0, timeout=patience) as client:
        plain = outcome(client, lambda part: None)
        wrapped = outcome(wrap(client, **parsers), lambda part: thought.append(reasoning(part.choices[0].delta)))
    assert wrapped is plain
    if upstream.pieces and upstream.status == 200:
        assert thought[0] == "Hm"


def test_a_body_that_ends_before_the_reply_is_an_error(failing: Any, serve: Any, parsers: Any) -> None:
    """Of half a character, which the plain client cannot read, and of a reply that merely stops."""
    with openai.OpenAI(base_url=serve(failing("ends in a character")), api_key="k", max_retries=0) as client:
        assert outcome(wrap(client, **parsers), lambda part: None) is openai.APIError


def test_an_event_over_the_limit_passes_as_it_is(upstream: Any, event: Any, serve: Any, parsers: Any) -> None:
    """8 MB: the SDK itself gathers an event piece by piece, in time that grows with the square of its size."""
    text = "<think>" + "x" * 8_000_000
    source = upstream([event("<think>Hm"), event(text), event(".</think>Hi"), event(None, "stop"), b"data: [DONE]\n\n"])
    with openai.OpenAI(base_url=serve(source), api_key="k", max_retries=0) as client:
        wrapped = wrap(client, max_body=1 << 20, **parsers)
        parts = [part.choices[0] for part in wrapped.chat.completions.create(**ASKED, stream=True)]
    assert [reasoning(part.delta) or part.delta.content for part in parts] == ["Hm", text, ".", "Hi", None]


@pytest.mark.parametrize("parts", range(4))
def test_a_client_may_leave_at_any_part(parts: int, upstream: Any, event: Any, serve: Any, parsers: Any) -> None:
    source = upstream([event("<think>Hm"), event(".</think>"), event("Hi"), event("!")], "is silent")
    with (
        openai.OpenAI(base_url=serve(source), api_key="k", max_retries=0) as client,
        wrap(client, **parsers).chat.completions.create(**ASKED, stream=True) as stream,
    ):
        for _ in range(parts):
            next(stream)
        assert source.left == 0
        stream.close()
        assert source.heard.wait(1)
