"""What a request demands of its answer, read from `response_format` and `structured_outputs`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamsieve.backends.request_fields import Body, is_whole
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import JsonObject
from streamsieve.wire.request.refusal import Refused

_KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
OLDER = ("guided_json", "guided_regex", "guided_choice", "guided_grammar")
"""How vLLM called them before `structured_outputs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demanded:
    """One demand; `param` is the field that makes it.

    One of these is set: `schema`, of JSON that the answer is; `part`, a format of structural tags that it follows;
    `tag`, a format that the whole reply behind its thinking follows. `strict`: what of the schema could not be enforced
    is an error.
    """

    param: str
    schema: JsonSchema | None = None
    part: JsonObject | None = None
    tag: JsonObject | None = None
    strict: bool = False


def demanded(body: Body) -> Demanded | None:
    """What `body` demands of the answer; None where any text will do. Raises Refused where it makes no sense."""
    found = [one for one in (_response_format(body), _structured_outputs(body)) if one]
    if len(found) > 1:
        raise Refused("structured_outputs: not together with response_format; choose one.", "structured_outputs")
    return found[0] if found else None


def _response_format(body: Body) -> Demanded | None:
    param = "response_format"
    match body.get(param):
        case None | {"type": "text"}:
            return None
        case {"type": "json_object", "schema": Mapping() as schema}:  # llama.cpp's way
            return Demanded(param=param, schema=schema)
        case {"type": "json_object"}:
            return Demanded(param=param, schema={"type": "object"})
        case {"type": "json_schema", "json_schema": Mapping() as wrapper}:
            schema = wrapper.get("schema", {"type": "object"})
            if not isinstance(schema, Mapping):
                raise Refused("response_format.json_schema.schema: must be a JSON schema.", param)
            return Demanded(param=param, schema=schema, strict=wrapper.get("strict") is True)
        case {"type": "json_schema", "schema": Mapping() as schema}:
            return Demanded(param=param, schema=schema)
        case {"type": "json_schema"}:
            raise Refused("response_format.json_schema: an object with a schema is required.", param)
        case {"type": "structural_tag"} as tag:
            assert isinstance(tag, Mapping)
            return Demanded(param=param, tag=_structural_tag(tag, param))
        case _:
            kinds = "text, json_object, json_schema, structural_tag"
            raise Refused(f"response_format: must be an object whose type is one of {kinds}.", param)


def _structured_outputs(body: Body) -> Demanded | None:
    given = body.get("structured_outputs")
    if given is not None and not isinstance(given, Mapping):
        raise Refused("structured_outputs: must be an object.", "structured_outputs")
    fields = {f"structured_outputs.{key}": value for key, value in (given or {}).items() if value is not None}
    for param in fields:
        if param.rpartition(".")[2] not in _KINDS:
            raise Refused(f"{param}: unknown; one of {', '.join(_KINDS)} is expected.", "structured_outputs")
    fields = {param: value for param, value in fields.items() if value is not False}
    fields |= {param: body[param] for param in OLDER if body.get(param) is not None}
    if len(fields) > 1:
        raise Refused(f"{' and '.join(fields)}: choose one.", "structured_outputs")
    for param, value in fields.items():
        return _of_kind(param, param.removeprefix("guided_").rpartition(".")[2], value)
    return None


def _of_kind(param: str, kind: str, value: object) -> Demanded:
    if kind in ("json", "structural_tag") and isinstance(value, str):
        value = _read_json(value, param)
    match kind, value:
        case "json", Mapping() as schema:
            return Demanded(param=param, schema=schema)
        case "json_object", True:
            return Demanded(param=param, schema={"type": "object"})
        case "regex", str() as pattern:
            return Demanded(param=param, part={"type": "regex", "pattern": pattern})
        case "grammar", str() as grammar:
            return Demanded(param=param, part={"type": "grammar", "grammar": grammar})
        case "choice", [_, *_] as choices if all(isinstance(one, str) and is_whole(one) for one in choices):
            return Demanded(param=param, part={"type": "grammar", "grammar": _choice(map(str, choices))})
        case "structural_tag", Mapping() as tag:
            return Demanded(param=param, tag=_structural_tag(tag, param))
    raise Refused(f"{param}: not what is expected of a {kind}.", param)


def _choice(choices: Iterable[str]) -> str:
    """An EBNF grammar of these texts. Character by character: what looks like a special token is text here."""
    return "root ::= " + " | ".join(f'"{"".join(map(_escaped, choice))}"' for choice in choices)


def _escaped(letter: str) -> str:
    return letter if letter.isalnum() and letter.isascii() else f"\\U{ord(letter):08x}"


def _structural_tag(tag: Body, param: str) -> JsonObject:
    """The format of a structural tag, which may be in the older form that vLLM takes: `structures` and `triggers`."""
    match tag:
        case {"format": Mapping() as form}:
            return dict(form)
        case {"structures": [*structures], "triggers": [*triggers]}:
            tags = [_older_structure(one, param) for one in structures]
            return {"type": "triggered_tags", "triggers": triggers, "tags": tags}
        case _:
            raise Refused(f"{param}: a structural_tag has a format, or structures and triggers.", param)


def _older_structure(structure: object, param: str) -> JsonObject:
    match structure:
        case {"begin": str(begin), "schema": schema, "end": str(end)}:
            schema = _read_json(schema, param) if isinstance(schema, str) else schema
            return {
                "type": "tag",
                "begin": begin,
                "content": {"type": "json_schema", "json_schema": schema},
                "end": end,
            }
        case _:
            raise Refused(f"{param}: each of structures has a begin, a schema and an end.", param)


def _read_json(text: str, param: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{param}: is not JSON: {error}", param) from error
