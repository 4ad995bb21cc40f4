"""A JSON schema as xgrammar is given it: without what it would make of text that is no JSON, or tell on standard error.

`schema_lint` tells of all that is left out here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamsieve.backends.local.constraints.schema_lint import LOOK_AROUND, MANY, NAMED, ONE, breaks_json, is_elsewhere


def usable(schema: object) -> object:
    """`schema` without patterns that ask for characters that JSON escapes, look-around, and references to elsewhere.

    Of the last two xgrammar enforces nothing, but it writes them to standard error as the request has them.
    """
    return schema if not isinstance(schema, Mapping) else dict(_usable(schema))


def without_look_around(pattern: str) -> str:
    """What is left of a regular expression."""
    kept: list[str] = []
    position = 0
    while found := LOOK_AROUND.search(pattern, position):
        kept.append(pattern[position : found.start()])
        position = _end_of_group(pattern, found.start())
    return "".join(kept) + pattern[position:]


def _end_of_group(pattern: str, start: int) -> int:
    """Behind the parenthesis that closes the one at `start`."""
    depth, in_class, position = 0, False, start
    while position < len(pattern):
        match pattern[position]:
            case "\\":
                position += 1
            case "[":
                in_class = True
            case "]":
                in_class = False
            case "(" if not in_class:
                depth += 1
            case ")" if not in_class:
                depth -= 1
        position += 1
        if depth == 0:
            break
    return position


def has_lengths(schema: object) -> bool:
    """Whether a string somewhere in `schema`, or in any other JSON, has a least or a greatest length."""
    left = [schema]
    while left:
        here = left.pop()
        if isinstance(here, Mapping):
            if "minLength" in here or "maxLength" in here:
                return True
            left += here.values()
        elif isinstance(here, list):
            left += here
    return False


def _usable(schema: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in schema.items():
        if (key == "pattern" and breaks_json(value)) or (key == "$ref" and is_elsewhere(value)):
            continue
        if key == "pattern" and isinstance(value, str):
            value = without_look_around(value)
        if key in ONE:
            yield key, usable(value)
        elif key in MANY and isinstance(value, list):
            yield key, [usable(one) for one in value]
        elif key in NAMED and isinstance(value, Mapping):
            named = {name: usable(one) for name, one in value.items()}
            if key == "patternProperties":
                named = {without_look_around(name): one for name, one in named.items() if not breaks_json(name)}
            yield key, named
        else:
            yield key, value
