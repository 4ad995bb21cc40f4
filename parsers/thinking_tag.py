"""A structural tag that holds from a reply's first token: free thinking, and then what is demanded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.reasoning import Opening
from streamsieve.parsers.request import Request
from streamsieve.parsers.structural_tag import Demand, check_names, replies
from streamsieve.parsers.tables import tables
from streamsieve.parsers.tag_parts import JsonObject, either, sequence, text

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format


def may_think(format: Format, request: Request) -> bool:
    """Whether the reply to `request` may have thinking that markers close."""
    span = format.reasoning
    return span is not None and span.of(request).opening(request)[0] not in (Opening.OFF, Opening.ANSWERED)


def whole_reply(format: Format, demand: Demand, request: Request) -> JsonObject:
    """The structural tag of the whole reply, where an engine applies one from the first token.

    In a message format the tag of the answer is that already. Raises Inexpressible as `Format.structural_tag`.
    """

    @cache
    def behind(opener: str) -> JsonObject | None:
        try:
            return replies(format, replace(demand, opener=opener), request)
        except Inexpressible:  # the grammar has no calls behind it
            return None

    answer = replies(format, demand, request)
    check_names(format, demand)
    content = behind_thinking(format, request, answer, behind if demand.calls != "none" else None)
    return {"type": "structural_tag", "format": content}


def behind_thinking(
    format: Format, request: Request, answer: JsonObject, behind: Callable[[str], JsonObject | None] | None = None
) -> JsonObject:
    """`answer` with the thinking before it that the reply to `request` may have.

    `behind`: what follows the opener of a call that ends thinking, None where that may not stand; left out where
    there are no calls.
    """
    if format.reasoning is None:
        return answer
    span = format.reasoning.of(request)
    opening, open_pair = span.opening(request)
    marked = tables(replace(format, reasoning=span), behind is not None, False)
    at_start = marked.answers.literals if opening is Opening.UNLESS_ANSWERED else ()

    def thinking(pair: int) -> JsonObject:
        ends = marked.reasoning[pair].thinking_ends
        follows = {marker: behind and behind(marker) if is_call else answer for marker, is_call in ends.items()}
        told = [sequence(marker, then) for marker, then in follows.items() if then is not None]
        return sequence(text([*ends, *at_start]), either(*told))

    match opening:
        case Opening.OFF | Opening.ANSWERED:
            return answer
        case Opening.REASONING | Opening.RESTORED:
            return thinking(open_pair)
        case Opening.UNLESS_ANSWERED:
            return either(thinking(open_pair), answer)
        case Opening.MARKED:
            marks = [sequence(opener, thinking(marked.pair_of[opener])) for opener in span.openers]
            return either(*marks, answer)
