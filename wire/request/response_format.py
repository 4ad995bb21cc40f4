"""What a request's `response_format` demands of the answer."""

from __future__ import annotations

from collections.abc import Mapping

from streamsieve.parsers.request import JsonSchema

_ANY_OBJECT: JsonSchema = {"type": "object"}


def schema_of(response_format: object) -> JsonSchema | None:
    """The JSON schema of the answer; None where any text will do, or what is demanded is no JSON schema."""
    match response_format:
        case {"type": "json_object", "schema": dict(schema)}:  # llama.cpp's way
            return schema
        case {"type": "json_object"}:
            return _ANY_OBJECT
        case {"type": "json_schema", "json_schema": {"schema": Mapping() as schema}}:
            return schema
        case {"type": "json_schema", "schema": Mapping() as schema}:
            return schema
        case _:
            return None


def is_constraint(response_format: object) -> bool:
    """Whether it demands anything."""
    match response_format:
        case None | {"type": "text"}:
            return False
    return True
