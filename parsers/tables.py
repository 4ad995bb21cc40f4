"""What each marker means in each state of a reply, for one format and one kind of request."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    STRAY_CLOSER = auto()  # the closer of an opener that was text, or of nothing
    RESTART = auto()  # text behind which calls may begin as at the start
    ANNOTATION = auto()  # a tag round part of a text begins, or is this marker
    LINE = auto()  # a line begins, where a call may
    FRAMING = auto()  # nothing, but it is a marker
    END_OF_TURN = auto()


@dataclass(frozen=True, eq=False)
class Table:
    """One state of a reply: the markers that mean something in it, and what."""

    roles: Mapping[str, Role]
    markers: Markers
    is_reasoning: bool = False

    @property
    def thinking_ends(self) -> dict[str, bool]:
        """The markers that end the thinking of this state, and whether each is the opener of calls."""
        ends = {Role.ANSWER: False, Role.CALL: True, Role.GROUP: True}
        return {marker: ends[role] for marker, role in self.roles.items() if role in ends}


@dataclass(frozen=True, eq=False)
class Tables:
    """All states of a reply, and what is looked for besides.

    `unopened` is content before the first thinking, where that may begin `anywhere`; `reasoning` has one for
    each pair of think markers; `opened_group` is for a group in which no call
    has come yet, `group` for one in which one has. `boundaries` is where a call may end, `boundaries_of`
    an opener that has closers of its own.
    """

    content: Table
    unopened: Table
    after_call: Table
    group: Table
    opened_group: Table
    reasoning: tuple[Table, ...]
    pair_of: Mapping[str, int]
    openers: Markers
    answers: Markers
    answer_openers: Markers
    lead_ins: Markers
    answer_starts: Markers
    group_starts: Markers
    line_starts: Markers
    ends: Markers
    boundaries: Markers
    boundaries_of: Mapping[str, Markers]


@lru_cache(maxsize=1024)
def tables(format: Format, parse_calls: bool, thinking_off: bool) -> Tables:
    """The tables for replies in `format`, with or without calls and thinking."""
    span = None if thinking_off else format.reasoning
    calls = format.calls if parse_calls else None
    ends = dict.fromkeys(format.ends, Role.END_OF_TURN)
    begins, inside = _call_roles(calls) if calls else ({}, {})
    tags = format.reasoning.answer if format.reasoning else ()
    everywhere = ends | dict.fromkeys(format.annotations, Role.ANNOTATION)
    framing = dict.fromkeys((*format.separators, *(tag for pair in tags for tag in pair)), Role.FRAMING)
    answer = everywhere | framing | _think_roles(span)
    strays = dict.fromkeys(calls.closers, Role.STRAY_CLOSER) if calls and calls.stray_closer == "dropped" else {}
    restarts = dict.fromkeys(calls.answer_restarts if calls else (), Role.RESTART)
    content = _table(restarts | answer | begins | strays | ({"\n": Role.LINE} if calls and calls.line_starts else {}))
    anywhere = dict.fromkeys(span.openers, Role.REASONING) if span and span.starts == "anywhere" else {}
    group = _table(answer | begins | inside)
    closers = calls.closers if calls else ()
    stops = {*ends, *begins, *inside, *(calls.stops if calls else ())} - {*closers}
    return Tables(
        content=content,
        unopened=_table(dict(content.roles) | anywhere) if anywhere else content,
        after_call=_after_call(calls, content, group, _table(answer)),
        group=group,
        opened_group=_table(ends | dict.fromkeys(span.closers if span else (), Role.ANSWER) | begins | inside),
        reasoning=tuple(_reasoning(span, pair, everywhere, begins, calls) for pair in span.pairs) if span else (),
        pair_of={span.lost_opener: 0} | {one: pair for pair, one in enumerate(span.openers)} if span else {},
        answers=Markers((*(span.enders if span else ()), *(_call_roles(format.calls)[0] if format.calls else ()))),
        answer_openers=Markers(opener for opener, _ in tags),
        lead_ins=Markers(format.lead_ins),
        openers=Markers((*span.openers, span.lost_opener) if span else ()),
        group_starts=Markers(calls.group_starts if calls else ()),
        answer_starts=Markers(calls.answer_starts if calls else ()),
        line_starts=Markers(calls.line_starts if calls else ()),
        ends=Markers({*format.ends} - {*closers} - {*inside}),
        boundaries=Markers((*stops, *closers)),
        boundaries_of=_own_boundaries(calls, stops) if calls else {},
    )


Roles = dict[str, Role]


def _table(roles: Roles, *, is_reasoning: bool = False) -> Table:
    return Table(roles, Markers(roles), is_reasoning)


def _call_roles(calls: CallSyntax) -> tuple[Roles, Roles]:
    """What begins calls anywhere in an answer, and what counts within a group of them."""
    openers = dict.fromkeys(calls.openers, Role.CALL)
    if not calls.groups:
        return openers, {}
    groups = dict.fromkeys((opener for opener, _ in calls.groups), Role.GROUP)
    closers = dict.fromkeys((closer for _, closer in calls.groups), Role.GROUP_END)
    return (openers | groups if calls.bare_calls == "calls" else groups), openers | closers


def _own_boundaries(calls: CallSyntax, stops: set[str]) -> dict[str, Markers]:
    own = {opener: calls.closers_of(opener) for opener in ("", *calls.openers)}
    return {opener: Markers((*stops, *closers)) for opener, closers in own.items() if closers != calls.closers}


def _after_call(calls: CallSyntax | None, content: Table, group: Table, answer: Table) -> Table:
    """What counts once a call has come."""
    if calls and calls.calls_in_reply == "one":
        return answer
    return group if calls and calls.groups else content


def _think_roles(span: ReasoningSpan | None) -> Roles:
    """What think markers mean once the answer is under way."""
    if span is None:
        return {}
    strays = dict.fromkeys(span.closers, Role.FRAMING) if span.stray_closer == "dropped" else {}
    return strays | dict.fromkeys(span.reopeners, Role.REASONING)


def _reasoning(
    span: ReasoningSpan, pair: tuple[str, str], everywhere: Roles, begins: Roles, calls: CallSyntax | None
) -> Table:
    opener, closer = pair
    roles = everywhere | dict.fromkeys((closer, *span.enders), Role.ANSWER)
    roles |= dict.fromkeys(span.framing, Role.FRAMING)
    if span.repeated_opener == "dropped":
        roles[opener] = Role.FRAMING
    if calls and span.ends_at_call:
        enders = begins if calls.thinking_enders is None else calls.thinking_enders
        roles |= {marker: begins[marker] for marker in enders}
    return _table(roles, is_reasoning=True)
