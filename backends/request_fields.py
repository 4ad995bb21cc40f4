"""Fields of a request body, read one by one; a wrong one is an `ApiError` (400) that names it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.requests import Request

from streamsieve.backends.openai_error import ApiError, bad_request

Body = Mapping[str, object]
MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request."""

MAX_CHOICES = 128


async def read_body(request: Request) -> Body:
    """The JSON object that `request` holds; 413 for one that is longer than `MAX_BODY`."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise ApiError(413, f"The request body is longer than {MAX_BODY} bytes.", code="request_too_large")
    return read_object(bytes(data))


def read_object(data: bytes) -> Body:
    """The JSON object that a request body holds."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"The request body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise bad_request("The request body must be a JSON object.")
    return body


def read_model(body: Body) -> str:
    """The name in `model`."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request("model: a name is required; GET /v1/models lists them.", "model")
    return model


def read_messages(body: Body) -> list[Body]:
    """`messages`: at least one, each an object with a role."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages: a list of at least one message is required.", "messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise bad_request(f"messages[{index}]: an object with a role is required.", f"messages[{index}]")
    return messages


def read_choices(body: Body) -> int:
    """`n`: how many choices are wanted."""
    return read_integer(body, "n", 1, MAX_CHOICES) or 1


def read_max_tokens(body: Body) -> int | None:
    """How many tokens a reply may have, under either of its names; None where nothing is said."""
    return read_integer(body, "max_completion_tokens", 1) or read_integer(body, "max_tokens", 1)


def read_include_usage(body: Body, stream: bool) -> bool:
    """`stream_options.include_usage`."""
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise bad_request("stream_options: must be an object.", "stream_options")
    if not stream:
        raise bad_request("stream_options: only allowed with stream: true.", "stream_options")
    return read_boolean(options, "stream_options.include_usage")


def read_text(body: Body, name: str) -> str | None:
    """A string that UTF-8 can carry; None where it is absent or null."""
    value = body.get(_key(name))
    if value is None:
        return None
    if not isinstance(value, str) or not is_whole(value):
        raise bad_request(f"{name}: must be a string of whole characters.", name)
    return value


def read_boolean(body: Body, name: str, default: bool = False) -> bool:
    """True or false; `default` where it is absent or null."""
    value = body.get(_key(name))
    if value is None:
        return default
    if not isinstance(value, bool):
        raise bad_request(f"{name}: {value!r} must be true or false.", name)
    return value


def read_integer(body: Body, name: str, least: int, most: int | None = None) -> int | None:
    """An integer within limits; None where it is absent or null."""
    value = body.get(_key(name))
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise bad_request(f"{name}: {value!r} must be an integer {limits}.", name)
    return value


def is_whole(text: str) -> bool:
    """Whether UTF-8 can carry `text`: JSON can spell half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(name: str) -> str:
    """The last part of a field's full name, as errors give it."""
    return name.rpartition(".")[2]
