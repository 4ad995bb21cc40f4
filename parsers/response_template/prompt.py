"""What the end of a prompt has begun of a reply that its response template describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamsieve.parsers.response_template.signs import Signs
from streamsieve.parsers.response_template.template import Field, Template


@dataclass(frozen=True)
class Region:
    """A field that is open. `captured` are the groups of its opener; `written` is what the prompt has of its text."""

    field: Field
    captured: Mapping[str, object]
    written: str = ""


def open_region(template: Template, prompt: str) -> tuple[Region | None, set[str]]:
    """The region in which `prompt` ends, if it ends in one, and the fields that may not come again."""
    ends = [found.end() for anchor in template.anchors for found in anchor.whole.finditer(prompt)]
    at = max(ends, default=0)
    spent: set[str] = set()
    while True:
        fields = {sign: field for field in template.fields if field.name not in spent for sign in field.opens}
        opener = Signs(tuple(fields)).first_in(prompt, at)
        if opener is None:
            return None, spent
        field = fields[opener.sign]
        if not field.repeats:
            spent.add(field.name)
        closer = field.closes.first_in(prompt, opener.match.end())
        if closer is None:
            return Region(field, opener.groups, prompt[opener.match.end() :]), spent
        at = closer.match.end()
