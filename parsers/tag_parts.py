"""The parts that structural tags are made of, as plain data: xgrammar's formats (`xgrammar.structural_tag`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from streamsieve.parsers.arguments.schema_choices import alone, argument_schemas
from streamsieve.parsers.request import JsonSchema

JsonObject = dict[str, object]
Part = JsonObject | str
"""A format, or a literal."""

_SPACE = 1
"""White space that JSON may have at a place, in characters: with no limit a model can go on with it for ever."""
_IN_PARTS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
NOTHING: JsonObject = {"type": "const_string", "value": ""}


def literal(value: str) -> JsonObject:
    """This very text."""
    return {"type": "const_string", "value": value}


def json(schema: JsonSchema, excludes: Sequence[str] = ()) -> JsonObject:
    """JSON text of a value of `schema`; nothing of `excludes` within its strings."""
    part: JsonObject = {"type": "json_schema", "json_schema": dict(schema), "max_whitespace_cnt": _SPACE}
    return part | ({"excludes": list(excludes)} if excludes else {})


def text(excludes: Iterable[str] = ()) -> JsonObject:
    """Any text without `excludes`."""
    return {"type": "any_text", "excludes": list(dict.fromkeys(filter(None, excludes)))}


def pattern(regex: str) -> JsonObject:
    """Text that `regex` matches from its beginning through its end."""
    return {"type": "regex", "pattern": regex}


def sequence(*parts: Part) -> JsonObject:
    """One part after another; literals that meet are one."""
    joined: list[JsonObject] = []
    for part in _flat(parts):
        if part["type"] == "const_string" and joined and joined[-1]["type"] == "const_string":
            joined[-1] = literal(f"{joined[-1]['value']}{part['value']}")
        elif part != NOTHING:
            joined.append(part)
    return joined[0] if len(joined) == 1 else {"type": "sequence", "elements": joined} if joined else NOTHING


def _flat(parts: Iterable[Part]) -> Iterator[JsonObject]:
    for part in parts:
        if isinstance(part, str):
            yield literal(part)
        elif part["type"] == "sequence" and isinstance(part["elements"], list):
            yield from part["elements"]
        else:
            yield part


def either(*parts: Part) -> JsonObject:
    """One of several parts."""
    choices: list[JsonObject] = []
    for part in parts:
        choice = literal(part) if isinstance(part, str) else part
        choices += [choice] if choice not in choices else []
    return choices[0] if len(choices) == 1 else {"type": "or", "elements": choices}


def optional(*parts: Part) -> JsonObject:
    """The parts, or nothing."""
    return NOTHING if (content := sequence(*parts)) == NOTHING else {"type": "optional", "content": content}


def repeated(*parts: Part) -> JsonObject:
    """The parts any number of times, or never."""
    return {"type": "star", "content": sequence(*parts)}


LEAD = optional(either("\n\n", "\n"))
"""The empty line that chat templates have before calls and answers, or a line break."""


def listed(item: Part, between: str, least: int = 1, most: int | None = None) -> JsonObject:
    """`item` from `least` to `most` times (None: without a limit), `between` two of them."""
    if most == 0:
        return NOTHING
    if least == 0:
        return optional(listed(item, between, 1, most))
    more = sequence(between, item)
    if (least, most) == (1, None):
        return sequence(item, {"type": "star", "content": more})
    if (least, most) == (1, 1):
        return sequence(item)
    return sequence(
        item, {"type": "repeat", "min": least - 1, "max": -1 if most is None else most - 1, "content": more}
    )


def arguments(schema: JsonSchema) -> JsonObject:
    """A JSON object that is the arguments of a call.

    What is said of it by reference or in parts is put together first: xgrammar takes one of `anyOf` that names no
    type, and `allOf`, for anything.
    """
    if _IN_PARTS.isdisjoint(schema) and schema.get("type", "object") == "object":
        return json({"type": "object", **schema})
    return either(*(json({"type": "object", **alone(one, schema)}) for one in argument_schemas(schema)))


def behind(part: Part, start: str) -> JsonObject:
    """What is left of `part` once `start` is written; choices that begin otherwise are out.

    Raises ValueError where none begins so.
    """
    begin, *rest = _flat([part])
    if begin["type"] == "or":
        left = [sequence(one, *rest) for one in elements(begin)]
        return either(*(behind(one, start) for one in left if _begins(one, start)))
    value = str(begin.get("value", ""))
    if start.startswith(value) and begin["type"] == "const_string" and rest:
        return behind(sequence(*rest), start.removeprefix(value)) if value != start else sequence(*rest)
    if not value.startswith(start):
        raise ValueError(f"{part!r} does not begin with {start!r}")
    return sequence(value.removeprefix(start), *rest)


def _begins(part: Part, start: str) -> bool:
    begin, *_ = _flat([part])
    value = str(begin.get("value", ""))
    return begin["type"] != "const_string" or value.startswith(start) or start.startswith(value)


def triggered(content: JsonObject, trigger: str, *, excludes: Iterable[str] = ()) -> JsonObject:
    """Text without `excludes` in which `content` goes on as it must wherever its beginning, `trigger`, is written."""
    return {
        "type": "dispatch",
        "rules": [[trigger, behind(content, trigger)]],
        "excludes": list(dict.fromkeys(excludes)),
    }


def elements(part: Part) -> list[JsonObject]:
    """The parts of a sequence, or the choices that there are; a part that is neither is alone."""
    found = list(_flat([part]))
    if len(found) == 1 and found[0]["type"] == "or" and isinstance(choices := found[0]["elements"], list):
        return choices
    return found
