"""A structural tag that holds from a reply's first token: free thinking, and then what is demanded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.reasoning import Opening, ReasoningSpan
from streamsieve.parsers.request import Request
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject, either, sequence, text

if TYPE_CHECKING:
    from streamsieve.parsers.calls.syntax import CallSyntax
    from streamsieve.parsers.format import Format

NOTHING_ENDS: Mapping[str, JsonObject | None] = {}
_NO_THINKING = frozenset({Opening.OFF, Opening.ANSWERED})


def may_think(format: Format, request: Request) -> bool:
    """Whether the reply to `request` may have thinking that markers close."""
    span = format.reasoning
    return span is not None and span.of(request).opening(request)[0] not in _NO_THINKING


def whole_reply(format: Format, demand: Demand, request: Request) -> JsonObject:
    """The structural tag of the whole reply, where an engine applies one from the first token.

    In a message format the tag of the answer is that already. Raises Inexpressible as `Format.structural_tag`.
    """
    answer = _content(format, demand, request)
    if format.reasoning is None or not may_think(format, request):
        return _tag(answer)
    openers = _ending_thinking(format, demand, request)
    behind = {opener: _behind(format, replace(demand, opener=opener), request) for opener in openers}
    return _tag(behind_thinking(format.reasoning.of(request), request, answer, behind))


def behind_thinking(
    span: ReasoningSpan, request: Request, answer: JsonObject, behind: Mapping[str, JsonObject | None] = NOTHING_ENDS
) -> JsonObject:
    """`answer` with the thinking before it that the reply to `request` may have.

    `behind`: call openers that end thinking, each with what follows it; None where the opener may not stand.
    """
    closers = tuple(dict.fromkeys(span.closers))
    ends = [sequence(closer, answer) for closer in closers]
    ends += [sequence(opener, then) for opener, then in behind.items() if then is not None]
    thinking = sequence(text([*closers, *behind]), either(*ends))
    match span.opening(request)[0]:
        case Opening.OFF | Opening.ANSWERED:
            return answer
        case Opening.REASONING | Opening.RESTORED:
            return thinking
        case Opening.UNLESS_ANSWERED:
            return either(thinking, answer)
        case Opening.MARKED:
            return either(*(sequence(opener, thinking) for opener in span.openers), answer)


def _ending_thinking(format: Format, demand: Demand, request: Request) -> Iterable[str]:
    """The call openers behind which thinking is over (contract, rule 5)."""
    span = format.reasoning
    if format.calls is None or span is None or demand.calls == "none":
        return ()
    calls = format.calls.of(request)
    if span.ends_at_call:
        return _openers(calls) if calls.thinking_enders is None else calls.thinking_enders
    return _openers(calls) if span.opening(request)[0] is Opening.UNLESS_ANSWERED else ()


def _openers(calls: CallSyntax) -> Iterable[str]:
    """What begins calls within text."""
    groups = tuple(opener for opener, _ in calls.groups)
    return dict.fromkeys((*groups, *calls.openers) if not groups or calls.bare_calls == "calls" else groups)


def _behind(format: Format, demand: Demand, request: Request) -> JsonObject | None:
    """What follows the opener of `demand`; None where the grammar has no calls behind it."""
    try:
        return _content(format, demand, request)
    except Inexpressible:
        return None


def _content(format: Format, demand: Demand, request: Request) -> JsonObject:
    made = format.structural_tag(demand, request)["format"]
    assert isinstance(made, dict)
    return made


def _tag(content: JsonObject) -> JsonObject:
    return {"type": "structural_tag", "format": content}
