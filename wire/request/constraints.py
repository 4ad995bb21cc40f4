"""Where a constraint stands in a request, dialect by dialect."""

from __future__ import annotations

from streamsieve.wire import json_text
from streamsieve.wire.dialects.dialect import Dialect
from streamsieve.wire.json_text import JsonObject


def with_tag(body: JsonObject, dialect: Dialect, tag: JsonObject) -> JsonObject:
    """`body` with a structural tag in the place of its `response_format`; the dialect must take one."""
    free = _without_response_format(body)
    if dialect.tag == "structured_outputs":
        return free | {"structured_outputs": {"structural_tag": json_text.encode(tag).decode()}}
    assert dialect.tag == "response_format"
    return free | {"response_format": tag}


def with_schema(body: JsonObject, dialect: Dialect, schema: JsonObject) -> JsonObject:
    """`body` with a JSON schema in the place of its `response_format`; the dialect must take one."""
    free = _without_response_format(body)
    match dialect.schema:
        case "structured_outputs":
            return free | {"structured_outputs": {"json": schema}}
        case "json_schema":
            return free | {"json_schema": schema}
        case _:
            assert dialect.schema == "response_format"
            named = {"name": "tool_calls", "schema": schema, "strict": True}
            return free | {"response_format": {"type": "json_schema", "json_schema": named}}


def _without_response_format(body: JsonObject) -> JsonObject:
    return {name: value for name, value in body.items() if name != "response_format"}
