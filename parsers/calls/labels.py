"""How a tag says the name of what it opens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamsieve.parsers.scanner import Malformed, Reader, Reading

_SPACE = re.compile(r"\s*")
_IN_QUOTES = {quote: re.compile(f"[^{quote}]*") for quote in "\"'"}
_UNQUOTED = re.compile(r"[^\s\"'<>=]*")


@dataclass(frozen=True, slots=True)
class Label:
    """A name behind the opener of a tag: bare, or the value of an attribute.

    `quotes`: the marks one of which stands on either side of it; empty where it is bare.
    `unquoted`: whether an attribute's value may stand without quotes all the same.
    `attribute`: the attribute, where the opener does not end in its `=`.
    `space`: what counts as white space within the tag.
    """

    quotes: str = ""
    unquoted: bool = False
    attribute: str = ""
    space: re.Pattern[str] = _SPACE

    def read(self, reader: Reader, opener: str, name: re.Pattern[str] | None, bare: re.Pattern[str]) -> Reading[str]:
        """Take the name behind `opener`: `name` is what it consists of in quotes (None: anything), `bare` without."""
        if self.attribute and not opener.endswith("="):
            yield from reader.run(self.space)
            yield from reader.take(self.attribute)
            yield from reader.run(self.space)
            yield from reader.take("=")
            yield from reader.run(self.space)
        if not self.quotes:
            return (yield from reader.run(bare))
        quote = yield from reader.peek()
        if quote in self.quotes:
            reader.position += 1
            label = yield from reader.run(name or _IN_QUOTES[quote])
            yield from reader.take(quote)
            return label
        label = (yield from reader.run(_UNQUOTED)) if self.unquoted else ""
        if not label:
            raise Malformed
        return label

    def write(self, opener: str, name: str) -> str:
        """The tag up to its end, as the format writes it."""
        quote = self.quotes[:1]
        attribute = f" {self.attribute}=" if self.attribute and not opener.endswith("=") else ""
        return f"{opener}{attribute}{quote}{name}{quote}"


BARE = Label()
QUOTED = Label(quotes='"')
ANY_QUOTES = Label(quotes="\"'", unquoted=True)
