"""A request on its way to the upstream: how its reply will be read, and what the upstream is asked instead."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.request import Request
from streamsieve.wire import json_text
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.refusal import Refused
from streamsieve.wire.settings import Settings

Headers = Sequence[tuple[bytes, bytes]]
"""Raw, in order, names in lower case."""

Api = Literal["chat", "responses", "completions"]

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Prepared:
    """One request and what has been decided of it; each step of `prepare` changes what it decides.

    `api`: what the client speaks. `upstream_api`: what the upstream is asked by. `path`: the path that it
    is asked at. `body`: the JSON object that it is sent. `request`: how the reply is read.
    """

    settings: Settings
    api: Api
    upstream_api: Api
    path: str
    headers: Headers
    body: JsonObject
    request: Request
    changed: bool = False
    """Whether the upstream is sent something else than the client wrote; `send` sees to it."""

    def send(self, body: JsonObject) -> None:
        """Have the upstream sent this body."""
        self.body = body
        self.changed = True


def prepare(settings: Settings, path: str, headers: Headers, data: bytes) -> Prepared | None:
    """Decide what becomes of a request; None where it is none that we understand, so that it passes.

    Raises Refused where it cannot be served.
    """
    if len(data) > settings.max_body:
        _logger.warning("the reply to a request over max_body (%d bytes) passes unparsed", settings.max_body)
        return None
    try:
        body = json_text.decode(data)
    except json_text.NotJsonError:
        return None
    if not isinstance(body, dict):
        return None
    request = Request.from_body(body, prompt_tail=settings.prompt_tail, unknown_tools=settings.unknown_tools)
    prepared = Prepared(settings, "chat", "chat", path, headers, body, request)
    for step in _STEPS:
        step(prepared)
    return prepared


def _check_format(prepared: Prepared) -> None:
    """Refuse `chat_template_kwargs` that the format does not have."""
    if prepared.settings.format is None:
        return
    try:
        prepared.settings.format.check(prepared.request)
    except ConfigurationError as error:
        raise Refused(str(error), "chat_template_kwargs") from error


_STEPS = (_check_format,)
"""In this order: which settings, what the client speaks, whether it can be served, how its calls are enforced, what
the upstream has to be asked for, and by which API."""
