"""Values of a JSON schema with bare keys and strings between delimiters, for structural tags."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers import tag_parts
from streamsieve.parsers.arguments.delimited_text import DelimitedText
from streamsieve.parsers.arguments.narrowed_pattern import other_words
from streamsieve.parsers.arguments.schema_choices import Choice
from streamsieve.parsers.arguments.value_tags import ValueSyntax, raw_json, raw_text
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import Part, pattern, sequence


@dataclass(frozen=True)
class DelimitedValues(ValueSyntax):
    """Values as `text` reads them."""

    text: DelimitedText
    comma: ClassVar[str] = ","
    colon: ClassVar[str] = ":"

    def _between(self, part: Part) -> Part:
        return sequence(self.text.delimiter, part, self.text.delimiter)

    def strings(self, choice: Choice) -> list[Part]:
        """The text between delimiters."""
        return list(map(self._between, raw_text(choice, [self.text.delimiter])))

    def key(self, key: str) -> str:
        """A key: bare where it can be."""
        return self.text.write_key(key)

    def other_key(self, declared: Collection[str]) -> Part:
        """A bare key that is none of those that the schema declares."""
        return pattern(other_words(declared))

    def as_json(self, schema: JsonSchema) -> Part:
        """JSON between delimiters, which becomes what its schema says of it."""
        return self._between(raw_json(schema, [self.text.delimiter]))

    def anything(self) -> Part:
        """A string."""
        return self._between(tag_parts.text([self.text.delimiter]))
