"""What each marker means in each state of a reply, for one format and one kind of request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING

from streamsieve.parsers.scanner import Markers

if TYPE_CHECKING:
    from streamsieve.parsers.calls.syntax import CallSyntax
    from streamsieve.parsers.format import Format
    from streamsieve.parsers.reasoning import ReasoningSpan

BLANKS = re.compile(r"[ \t]*")


class Role(Enum):
    """What a marker does where it stands."""

    REASONING = auto()  # thinking begins
    ANSWER = auto()  # thinking ends
    CALL = auto()  # a call, or a list of them, may begin
    GROUP = auto()  # a group of calls may begin
    GROUP_END = auto()
    LINE = auto()  # a line begins, where a call may
    FRAMING = auto()  # nothing, but it is a marker
    END_OF_TURN = auto()


@dataclass(frozen=True, eq=False)
class Table:
    """One state of a reply: the markers that mean something in it, and what."""

    roles: Mapping[str, Role]
    markers: Markers
    is_reasoning: bool = False
    opener: Markers = Markers(())
    starts: Markers = Markers(())
    is_strict: bool = False


@dataclass(frozen=True, eq=False)
class Tables:
    """All states of a reply. `reasoning` has one for each pair of think markers."""

    content: Table
    after_call: Table
    group: Table
    opened_group: Table
    reasoning: tuple[Table, ...]
    openers: Markers
    pair_of: Mapping[str, int]
    broken: Markers
    stops: frozenset[str]
    line_starts: Markers


@lru_cache(maxsize=1024)
def tables(format: Format, parse_calls: bool, thinking_off: bool) -> Tables:
    """The tables for replies in `format`, with or without calls and thinking."""
    span = None if thinking_off else format.reasoning
    calls = format.calls if parse_calls else None
    ends = dict.fromkeys(format.ends, Role.END_OF_TURN)
    content = dict(ends)
    if span:
        if span.stray_closer == "dropped":
            content |= dict.fromkeys(span.closers, Role.FRAMING)
        content |= dict.fromkeys(span.reopeners, Role.REASONING)
    begins = _call_begins(calls)
    in_group = dict(content)
    if calls:
        content |= begins | ({"\n": Role.LINE} if calls.line_starts else {})
        in_group |= begins | _inside_group(calls)
    opened = ends | dict.fromkeys(span.closers if span else (), Role.ANSWER)
    opened |= (begins | _inside_group(calls)) if calls else {}
    stops = {*ends, *begins, *_inside_group(calls), *(calls.stops if calls else ())} - set(calls.closers if calls else ())
    answer, group = _table(content, starts=calls.answer_starts if calls else ()), _table(in_group)
    return Tables(
        content=answer,
        after_call=group if calls and calls.groups else answer,
        group=group,
        opened_group=_table(opened, is_strict=bool(calls and calls.group_text == "refused")),
        reasoning=tuple(_reasoning(span, pair, ends, calls) for pair in range(len(span.pairs))) if span else (),
        openers=Markers(span.openers if span else ()),
        pair_of={opener: pair for pair, opener in enumerate(span.openers)} if span else {},
        broken=Markers((*stops, *(calls.closers if calls else ()))),
        stops=frozenset(stops),
        line_starts=Markers(calls.line_starts if calls else ()),
    )


def _call_begins(calls: CallSyntax | None) -> dict[str, Role]:
    if calls is None:
        return {}
    if calls.groups:
        bare = dict.fromkeys(calls.openers if calls.bare_calls == "calls" else (), Role.CALL)
        return bare | dict.fromkeys((opener for opener, _ in calls.groups), Role.GROUP)
    return dict.fromkeys(calls.openers, Role.CALL)


def _inside_group(calls: CallSyntax | None) -> dict[str, Role]:
    if calls is None or not calls.groups:
        return {}
    closers = dict.fromkeys((closer for _, closer in calls.groups), Role.GROUP_END)
    return dict.fromkeys(calls.openers, Role.CALL) | closers


def _reasoning(span: ReasoningSpan, pair: int, ends: Mapping[str, Role], calls: CallSyntax | None) -> Table:
    opener, closer = span.pairs[pair]
    roles = {**ends, closer: Role.ANSWER}
    if span.repeated_opener == "dropped":
        roles[opener] = Role.FRAMING
    if calls and span.ends_at_call:
        begins = _call_begins(calls)
        enders = begins if calls.thinking_enders is None else calls.thinking_enders
        roles |= {marker: begins[marker] for marker in enders}
    return _table(roles, is_reasoning=True, opener=opener)


def _table(
    roles: Mapping[str, Role], *, is_reasoning: bool = False, opener: str = "", starts: Iterable[str] = (),
    is_strict: bool = False,
) -> Table:  # fmt: skip
    return Table(roles, Markers(roles), is_reasoning, Markers((opener,)), Markers(starts), is_strict)
