"""A request on its way to the upstream: how its reply will be read, and what the upstream is asked instead."""

from __future__ import annotations

import logging

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire import json_text
from streamsieve.wire.completions.prompt import ask_with_prompt, render_prompt
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.observing.observers import tell
from streamsieve.wire.observing.record import Record
from streamsieve.wire.observing.shadow import ask_for_tokens
from streamsieve.wire.request.enforcement import enforce
from streamsieve.wire.request.prepared import Headers, Prepared, request_of
from streamsieve.wire.request.raw_text import ask_for_raw_text
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.request.reply_start import follow_effort, follow_final_message, follow_sorted_thinking
from streamsieve.wire.request.tool_choice import ToolChoice
from streamsieve.wire.responses.api import choose_api
from streamsieve.wire.settings import Settings

_logger = logging.getLogger(__name__)
_LONGEST_MODEL = 256
"""Characters of a model's name that observers are told, who send it on: the client may write anything there."""


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
    prepared = _begun(settings, path, headers, body)
    try:
        routed = settings.for_request(body.get("model"), headers)
        if routed is not settings:
            prepared = _begun(routed, path, headers, body)
        for step in _SHADOW_STEPS if routed.shadow else _STEPS:
            step(prepared)
    except Refused as refusal:
        if prepared.record is not None:
            prepared.record.outcome, prepared.record.status = "refused", refusal.status
            prepared.record.api = prepared.api
            tell(prepared.settings.told, prepared.record)
        raise
    if prepared.record is not None:
        prepared.record.request, prepared.record.api = prepared.request, prepared.api
    return prepared


def _begun(settings: Settings, path: str, headers: Headers, body: JsonObject) -> Prepared:
    prepared = Prepared(settings, "chat", "chat", path, headers, body, request_of(body, settings))
    if settings.told:
        prepared.record = _record(prepared)
    return prepared


def _record(prepared: Prepared) -> Record:
    settings, model = prepared.settings, prepared.body.get("model")
    return Record(
        format=settings.format.name if settings.format else "none",
        model=model[:_LONGEST_MODEL].encode(errors="replace").decode() if isinstance(model, str) else None,
        api=prepared.api,
        tool_parser=settings.tool_parser,
        reasoning_parser=settings.reasoning_parser,
        request=prepared.request,
        asked=prepared.body,
        most_kept=settings.max_body if settings.capture is not None else 0,
    )


def _check_format(prepared: Prepared) -> None:
    """Refuse `chat_template_kwargs` that the format does not have."""
    if prepared.settings.format is None:
        return
    try:
        prepared.settings.format.check(prepared.request)
    except ConfigurationError as error:
        raise Refused(str(error), "chat_template_kwargs") from error


def _read_tool_choice(prepared: Prepared) -> None:
    """Refuse a `tool_choice` that asks for calls which there cannot be."""
    if prepared.settings.reads_calls and prepared.upstream_api == "chat":
        prepared.choice = ToolChoice.of(prepared.body, prepared.request)


_STEPS = (
    choose_api,
    _check_format,
    _read_tool_choice,
    follow_effort,
    follow_final_message,
    render_prompt,
    follow_sorted_thinking,
    enforce,
    ask_for_raw_text,
    ask_with_prompt,
)
"""In this order: which settings, what the client speaks, whether it can be served, how its calls are enforced, what
the upstream has to be asked for, and by which API."""

_SHADOW_STEPS = (choose_api, ask_for_tokens)
"""Where the upstream sorts by itself, it is asked as the client asks it."""
