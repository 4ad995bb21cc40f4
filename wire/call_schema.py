"""Calls as a JSON schema, for upstreams that take nothing better, and the format that reads such replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamsieve.parsers.calls.json_reply import CALL_LIST, bare_arguments
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.structural_tag import Demand
from streamsieve.wire.json_text import JsonObject

_DEFINITIONS = ("$defs", "definitions")


def call_schema(demand: Demand) -> JsonObject:
    """What the answer must be as JSON: calls, or where they are not required either calls or `demand.response`.

    The one function's arguments where only one call of one function can be; else a list of
    `{"name", "parameters"}`.
    """
    definitions: JsonObject = {}
    if is_bare(demand):
        (schema,) = demand.schemas.values()
        answer = _standing_in("", _object(schema), definitions)
    else:
        answer = _list(demand, definitions)
    if demand.calls == "auto" and demand.response is not None:
        answer = {"anyOf": [answer, _standing_in("answer", demand.response, definitions)]}
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
            "parameters": _standing_in(name, _object(schema), definitions),
        },
        "required": ["name", "parameters"],
        "additionalProperties": False,
    }


def _object(schema: JsonSchema) -> JsonSchema:
    return schema if schema else {"type": "object"}


def _standing_in(owner: str, schema: JsonSchema, definitions: JsonObject) -> JsonObject:
    """`schema` as it has to be within another: its definitions go to `definitions`, under names of their own.

    References to anything else in it than a definition, and to all of it, lead there too.
    """
    prefix = f"{owner}." if owner else ""
    own = {key: schema[key] for key in _DEFINITIONS if isinstance(schema.get(key), Mapping)}
    body = {key: value for key, value in schema.items() if key not in own}
    whole = f"{prefix}all"
    moved = False

    def reference(pointer: str) -> str:
        nonlocal moved
        for key, found in own.items():
            head, _, rest = pointer.removeprefix(f"#/{key}/").partition("/")
            assert isinstance(found, Mapping)
            if pointer.startswith(f"#/{key}/") and head in found:
                return "/".join(filter(None, ["#/$defs", prefix + head, rest]))
        if not pointer.startswith("#"):
            return pointer
        moved = True
        return f"#/$defs/{whole}{pointer[1:]}"

    def rewritten(value: object) -> object:
        if isinstance(value, Mapping):
            return {
                key: reference(one) if key == "$ref" and isinstance(one, str) else rewritten(one)
                for key, one in value.items()
            }
        return [rewritten(one) for one in value] if isinstance(value, list) else value

    for found in own.values():
        assert isinstance(found, Mapping)
        definitions |= {prefix + name: rewritten(one) for name, one in found.items()}
    made = rewritten(body)
    assert isinstance(made, dict)
    if moved:
        definitions[whole] = made
        return {"$ref": f"#/$defs/{whole}"}
    return made
