"""Values of a JSON schema as Python literals, and a call's arguments as keywords, for structural tags."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers import tag_parts
from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.arguments.narrowed_pattern import other_words
from streamsieve.parsers.arguments.schema_choices import Choice
from streamsieve.parsers.arguments.value_tags import ValueSyntax
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import JsonObject, Part, pattern, sequence

_CONSTRAINTS = frozenset({"pattern", "format", "minLength", "maxLength"})
_SINGLE_QUOTED = r"'(?:[^'\\\n\r]|\\['\"\\nrt]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4})*'"


@dataclass(frozen=True)
class PythonValues(ValueSyntax):
    """Python literals. Strings in double quotes are JSON's, which Python reads alike."""

    words: ClassVar[tuple[str, str, str]] = ("True", "False", "None")

    def strings(self, choice: Choice) -> list[Part]:
        """In double quotes, and in single ones where nothing is asked of the text."""
        if choice.values:
            return [way for value in map(str, choice.values) for way in (repr(value), f'"{quote(value)}"')]
        single = [] if _CONSTRAINTS & choice.schema.keys() else [pattern(_SINGLE_QUOTED)]
        return [tag_parts.json(choice.schema), *single]

    def key(self, key: str) -> str:
        """A key of a dictionary."""
        return f'"{quote(key)}"'

    def other_key(self, declared: Collection[str]) -> Part:
        """A key that is none of those that the schema declares."""
        return sequence('"', pattern(other_words(declared)), '"')

    def as_json(self, schema: JsonSchema) -> Part:
        """JSON, whose `true`, `false` and `null` are read too."""
        return tag_parts.json(schema)

    def anything(self) -> Part:
        """Any JSON."""
        return tag_parts.json({})


_VALUES = PythonValues()


@dataclass(frozen=True)
class Keywords(PythonValues):
    """The arguments of a call: `name=literal`."""

    colon: ClassVar[str] = "="

    def key(self, key: str) -> str:
        """The name of an argument."""
        if not key.isidentifier():
            raise Inexpressible(f"{key!r} is no name of an argument in Python")
        return key

    def other_key(self, declared: Collection[str]) -> Part:
        """A name that is none of those that the schema declares."""
        return pattern(other_words(declared))

    def value(self, what: str, schema: object, root: JsonSchema, depth: int = 0) -> JsonObject:
        """A literal."""
        return _VALUES.value(what, schema, root, depth)
