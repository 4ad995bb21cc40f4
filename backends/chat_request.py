"""The chat completion requests that `replay` answers: what it reads of them, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Literal

from streamsieve.backends.openai_error import bad_request
from streamsieve.backends.request_fields import (
    Body,
    read_boolean,
    read_choices,
    read_include_usage,
    read_integer,
    read_max_tokens,
    read_messages,
    read_model,
    read_object,
    read_text,
)

MAX_DELAY = 60.0


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The request's own field `replay`: how the recording is to be played.

    `scene`: which reply of the family. `raw`: this text instead of a recording. `finish`: the engine's
    finish reason. `chunk`: code points in one delta. `delay`: seconds before each delta.
    `error`: an HTTP status (400 to 599) answers at once with that error; in a stream `"event"` sends an
    error event and `"drop"` cuts the connection, each after `error_after` deltas.
    """

    scene: str | None = None
    raw: str | None = None
    finish: Literal["stop", "length", "content_filter"] | None = None
    chunk: int | None = None
    delay: float | None = None
    error: int | Literal["event", "drop"] | None = None
    error_after: int = 0


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request that can be answered.

    `wants_call`: it offers tools and no tool has answered yet. `max_tokens`: a token is four code points here.
    """

    model: str
    stream: bool
    include_usage: bool
    choices: int
    max_tokens: int | None
    prompt_characters: int
    wants_call: bool
    replay: ReplayOptions


def read_chat_request(data: bytes) -> ChatRequest:
    """Read the body of `POST /v1/chat/completions`; raises `ApiError` (400) for a wrong one."""
    body = read_object(data)
    messages = read_messages(body)
    stream = read_boolean(body, "stream")
    return ChatRequest(
        model=read_model(body),
        stream=stream,
        include_usage=read_include_usage(body, stream),
        choices=read_choices(body),
        max_tokens=read_max_tokens(body),
        prompt_characters=sum(len(json.dumps(message, ensure_ascii=False)) for message in messages),
        wants_call=bool(body.get("tools")) and body.get("tool_choice") != "none" and messages[-1].get("role") != "tool",
        replay=_replay_options(body, stream),
    )


def _replay_options(body: Body, stream: bool) -> ReplayOptions:
    given = body.get("replay")
    if given is None:
        return ReplayOptions()
    if not isinstance(given, dict):
        raise bad_request("replay: must be an object.", "replay")
    known = [field.name for field in fields(ReplayOptions)]
    for name in given:
        if name not in known:
            raise bad_request(f"replay: unknown field {name!r}; fields: {', '.join(known)}.", "replay")
    return ReplayOptions(
        scene=read_text(given, "replay.scene"),
        raw=read_text(given, "replay.raw"),
        finish=_finish(given),
        chunk=read_integer(given, "replay.chunk", 1),
        delay=_delay(given),
        error=_error(given, stream),
        error_after=read_integer(given, "replay.error_after", 0) or 0,
    )


def _finish(options: Body) -> Literal["stop", "length", "content_filter"] | None:
    match options.get("finish"):
        case None | "stop" | "length" | "content_filter" as finish:
            return finish
        case other:
            raise bad_request(f"replay.finish: {other!r} must be stop, length or content_filter.", "replay.finish")


def _delay(options: Body) -> float | None:
    match options.get("delay"):
        case None:
            return None
        case (int() | float()) as delay if not isinstance(delay, bool) and 0 <= delay <= MAX_DELAY:
            return float(delay)
        case other:
            raise bad_request(f"replay.delay: {other!r} must be seconds from 0 to {MAX_DELAY:g}.", "replay.delay")


def _error(options: Body, stream: bool) -> int | Literal["event", "drop"] | None:
    match options.get("error"):
        case None:
            return None
        case int() as status if 400 <= status <= 599:
            return status
        case "event" | "drop" as how if stream:
            return how
        case other:
            allowed = "an HTTP status from 400 to 599, or in a stream 'event' or 'drop'"
            raise bad_request(f"replay.error: {other!r} must be {allowed}.", "replay.error")
