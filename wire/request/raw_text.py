"""What an upstream is asked for, in its own dialect: raw text, and a template that reads all that was said."""

from __future__ import annotations

from streamsieve.parsers.format import Format
from streamsieve.wire.dialects.dialect import NO_FIELDS, Dialect, Fields
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared

_REASONING = ("reasoning", "reasoning_content")


def ask_for_raw_text(prepared: Prepared) -> None:
    """Add to the request what its upstream's dialect has for it."""
    settings, dialect = prepared.settings, prepared.settings.dialect
    if dialect is None or settings.format is None or prepared.upstream_api != "chat":
        return
    body = prepared.body
    asked: JsonObject = dict(dialect.raw_text) | dict(_end_tokens(body, dialect, settings.format))
    if settings.special_tokens is not None and dialect.token_ids and (dialect.ids_in_streams or not body.get("stream")):
        prepared.keep_ids = all(body.get(name) == value for name, value in dialect.token_ids.items())
        asked |= dialect.token_ids
    if settings.reads_calls:
        asked |= _tool_choice(prepared, dialect)
    if body.get("continue_final_message") is True:
        asked |= {name: value for name, value in dialect.continuing.items() if name not in body}
    if dialect.reasoning_field is not None:
        asked |= _history(body, dialect.reasoning_field)
    prepared.ask(asked)


def _end_tokens(body: JsonObject, dialect: Dialect, format: Format) -> Fields:
    """The fields that keep the end-of-turn token, where it is known and no stop of the client's would be kept too."""
    has_stops = body.get("stop") or body.get("stop_token_ids") or body.get("stop_regex")
    return NO_FIELDS if has_stops or not format.ends else dialect.end_tokens


def _tool_choice(prepared: Prepared, dialect: Dialect) -> JsonObject:
    """Tools that the upstream neither parses nor refuses; of `allowed_tools`, which few know, what it allows."""
    choice, body = prepared.choice, prepared.body
    asked: JsonObject = {}
    match body:
        case {"tool_choice": {"type": "allowed_tools"}, "tools": [*tools]}:
            allowed = [tool for tool in tools if _name(tool) in choice.tools]
            asked = {"tool_choice": choice.calls, "tools": allowed}
    if dialect.calls == "raw" and choice.calls != "none":
        asked["tool_choice"] = dialect.tool_choice
    return asked


def _name(tool: object) -> object:
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _history(body: JsonObject, field: str) -> JsonObject:
    """`messages` with the reasoning of earlier turns under `field` alone; nothing where it is so already."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return {}
    named = [_renamed(message, field) for message in messages]
    return {"messages": named} if named != messages else {}


def _renamed(message: object, field: str) -> object:
    if not isinstance(message, dict) or not any(name in message for name in _REASONING if name != field):
        return message
    said = [message.get(field), *(message.get(name) for name in _REASONING)]
    kept = {name: value for name, value in message.items() if name not in _REASONING}
    reasoning = next(filter(None, said), None)
    return kept if reasoning is None else {**kept, field: reasoning}
