"""The tags round one parameter of a call."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamsieve.parsers.arguments.schema_types import Typing
from streamsieve.parsers.calls.labels import BARE, Label
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.scanner import Reader, Reading

_KEY_BEFORE_BRACKET = re.compile(r"[^>\r\n]*")
_KEY_BEFORE_TAG = re.compile(r"[^<]*")
Head = tuple[str, frozenset[str]]
"""The key of a parameter, and the types that its value may have."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """The tags of one parameter: `open KEY key_close [space value_open] VALUE value_close`.

    `variants` are other spellings of `open`, `close_variants` of `value_close`. `verbatim`: marks that may
    stand round the whole value, and between which nothing but the second of them before `value_close` ends it.
    """

    open: str
    key_close: str
    value_close: str
    value_open: str = ""
    variants: tuple[str, ...] = ()
    close_variants: tuple[str, ...] = ()
    label: Label = BARE
    verbatim: tuple[str, str] | None = None

    @property
    def opens(self) -> tuple[str, ...]:
        """Every spelling of its opener."""
        return (self.open, *self.variants)

    @property
    def closes(self) -> tuple[str, ...]:
        """Every spelling of its closer."""
        return (self.value_close, *self.close_variants)

    def read_head(self, reader: Reader, opener: str, schema: JsonSchema | None, typing: Typing) -> Reading[Head]:
        """Take what stands between `opener` and the value: the key and the types that the value may have."""
        key = yield from self.read_key(reader, opener)
        yield from self.open_value(reader)
        return key, typing.types(schema, key)

    def types_of(self, value: object, schema: JsonSchema | None, key: str, typing: Typing) -> frozenset[str]:
        """The types of a value behind the head that is written for `value`."""
        return typing.types(schema, key)

    def read_key(self, reader: Reader, opener: str) -> Reading[str]:
        """Take the key, through `key_close`."""
        bare = _KEY_BEFORE_BRACKET if self.key_close == ">" else _KEY_BEFORE_TAG
        key = yield from self.label.read(reader, opener, None, bare)
        yield from reader.take_tag(self.key_close)
        return key if self.label.quotes else key.strip()

    def open_value(self, reader: Reader) -> Reading[None]:
        """Take the tag that opens the value, where there is one."""
        if self.value_open:
            yield from reader.space()
            yield from reader.take_tag(self.value_open)

    def write(self, key: str, value: object, text: str, space: str) -> str:
        """The parameter as the format writes it: `text` says `value`, `space` is between the parts."""
        return f"{self.write_opening(key, value, space)}{text}{self.value_close}"

    def write_opening(self, key: str, value: object, space: str) -> str:
        """What comes before the text of the value."""
        between = space if self.value_open else ""
        return f"{self.write_head(key, value, between)}{between}{self.value_open}"

    def write_head(self, key: str, value: object, space: str) -> str:
        """What comes before the value and the tag that opens it."""
        return f"{self.label.write(self.open, key)}{self.key_close}"
