"""A JSON schema without what would make xgrammar write text that is no JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamsieve.backends.local.schema_lint import MANY, NAMED, ONE, breaks_json


def usable(schema: object) -> object:
    """`schema` without the patterns that ask for characters that JSON escapes; `schema_lint` tells of them."""
    return schema if not isinstance(schema, Mapping) else dict(_usable(schema))


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
        if key == "pattern" and breaks_json(value):
            continue
        if key in ONE:
            yield key, usable(value)
        elif key in MANY and isinstance(value, list):
            yield key, [usable(one) for one in value]
        elif key in NAMED and isinstance(value, Mapping):
            named = {name: usable(one) for name, one in value.items()}
            if key == "patternProperties":
                named = {name: one for name, one in named.items() if not breaks_json(name)}
            yield key, named
        else:
            yield key, value
