"""Calls as a JSON schema, for upstreams that take nothing better, and the format that reads such replies."""

from __future__ import annotations

from dataclasses import replace

from streamsieve.parsers.call_writer import NAME
from streamsieve.parsers.calls.json_reply import CALL_LIST, bare_arguments
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.structural_tag import Demand
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.nested_schema import NestedSchema

_TELLS_TYPE = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf"})


def call_schema(demand: Demand) -> JsonObject:
    """What the answer must be as JSON: calls, or where they are not required either calls or `demand.response`.

    The one function's arguments where only one call of one function can be; else a list of
    `{"name", "parameters"}`. Raises Inexpressible for a tool whose name no call can have.
    """
    for name in demand.tools:
        if not name or not NAME.fullmatch(name):
            raise Inexpressible(f"{name!r} is not a name that a call can have")
    definitions: JsonObject = {}
    if is_bare(demand):
        (schema,) = demand.schemas.values()
        answer = _nested("", _object(schema), definitions)
    else:
        answer = _list(demand, definitions)
    if demand.calls == "auto" and demand.response is not None:
        answer = {"anyOf": [answer, _nested("answer", demand.response, definitions)]}
    return answer | ({"$defs": definitions} if definitions else {})


def is_bare(demand: Demand) -> bool:
    """Whether the answer is nothing but the arguments of the one function."""
    return demand.calls == "required" and not demand.parallel and len(demand.tools) == 1


def reading(format: Format, demand: Demand) -> Format:
    """`format` with calls as `call_schema` has them; its thinking stays, where markers close it."""
    syntax: CallSyntax = bare_arguments(*demand.tools) if is_bare(demand) else CALL_LIST
    span = format.reasoning
    if span is not None and span.starts == "unless answered":  # no marker of an answer comes first
        span = replace(span, starts="open")
    return replace(format, calls=syntax, messages=None, reasoning=span)


def _list(demand: Demand, definitions: JsonObject) -> JsonObject:
    calls: list[object] = [_call(name, schema, definitions) for name, schema in demand.schemas.items()]
    items = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return {"type": "array", "items": items, "minItems": 1} | ({} if demand.parallel else {"maxItems": 1})


def _call(name: str, schema: JsonSchema, definitions: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": [name]},
            "parameters": _nested(name, _object(schema), definitions),
        },
        "required": ["name", "parameters"],
        "additionalProperties": False,
    }


def _object(schema: JsonSchema) -> JsonSchema:
    """Arguments are an object, also where the schema does not say so."""
    return schema if _TELLS_TYPE & schema.keys() else {"type": "object", **schema}


def _nested(owner: str, schema: JsonSchema, definitions: JsonObject) -> JsonObject:
    nested = NestedSchema(owner, schema)
    definitions |= nested.definitions
    return nested.body
