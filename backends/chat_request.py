"""The chat completion requests that `replay` answers: what it reads of them, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from streamsieve.backends.openai_error import bad_request

Body = Mapping[str, object]
MAX_CHOICES = 128
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
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"The request body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise bad_request("The request body must be a JSON object.")
    messages = _messages(body)
    stream = _boolean(body, "stream")
    return ChatRequest(
        model=_model(body),
        stream=stream,
        include_usage=_include_usage(body, stream),
        choices=_integer(body, "n", 1, MAX_CHOICES) or 1,
        max_tokens=_integer(body, "max_completion_tokens", 1) or _integer(body, "max_tokens", 1),
        prompt_characters=sum(len(json.dumps(message, ensure_ascii=False)) for message in messages),
        wants_call=bool(body.get("tools")) and body.get("tool_choice") != "none" and messages[-1].get("role") != "tool",
        replay=_replay_options(body, stream),
    )


def _model(body: Body) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request("model: a name is required; GET /v1/models lists them.", "model")
    return model


def _messages(body: Body) -> list[Body]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages: a list of at least one message is required.", "messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise bad_request(f"messages[{index}]: an object with a role is required.", f"messages[{index}]")
    return messages


def _include_usage(body: Body, stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise bad_request("stream_options: must be an object.", "stream_options")
    if not stream:
        raise bad_request("stream_options: only allowed with stream: true.", "stream_options")
    return _boolean(options, "stream_options.include_usage")


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
        scene=_text(given, "replay.scene"),
        raw=_text(given, "replay.raw"),
        finish=_finish(given),
        chunk=_integer(given, "replay.chunk", 1),
        delay=_delay(given),
        error=_error(given, stream),
        error_after=_integer(given, "replay.error_after", 0) or 0,
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


def _text(options: Body, name: str) -> str | None:
    value = options.get(_key(name))
    if value is None:
        return None
    if not isinstance(value, str) or not _encodable(value):
        raise bad_request(f"{name}: must be a string of whole characters.", name)
    return value


def _encodable(text: str) -> bool:
    # JSON can spell half a surrogate pair; UTF-8, in which the answer goes out, cannot.
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _boolean(body: Body, name: str) -> bool:
    value = body.get(_key(name))
    if value is not None and not isinstance(value, bool):
        raise bad_request(f"{name}: {value!r} must be true or false.", name)
    return bool(value)


def _integer(body: Body, name: str, least: int, most: int | None = None) -> int | None:
    value = body.get(_key(name))
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise bad_request(f"{name}: {value!r} must be an integer {limits}.", name)
    return value


def _key(name: str) -> str:
    """The last part of a field's full name, as errors give it."""
    return name.rpartition(".")[2]
