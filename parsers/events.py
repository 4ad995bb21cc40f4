"""What a parser says about a reply: a closed union of small events, in the order written.

Events are values: nobody changes one. They are not frozen because making a frozen one takes twice as
long, and one is made for every delta.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, unsafe_hash=True)
class Reasoning:
    """Text for the reasoning tray; never empty."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class Content:
    """Text for the content tray; never empty."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class CallStart:
    """A call became real (contract, rule 6).

    `index` counts the calls of one reply from 0 without gaps; `id` is unique.
    """

    index: int
    name: str
    id: str


@dataclass(slots=True, unsafe_hash=True)
class CallArguments:
    """The next piece of a call's argument text; the pieces of one index joined are one JSON object."""

    index: int
    json: str


@dataclass(slots=True, unsafe_hash=True)
class CallEnd:
    """The call's argument text is complete. A call that was cut or broke off has no `CallEnd`."""

    index: int


@dataclass(slots=True, unsafe_hash=True)
class Repaired:
    """The reply broke its own format (contract, rules 7 and 12).

    `offset` counts characters from the start of the reply to where the broken markup began;
    `rule` is one of the closed set `RULES`.
    """

    offset: int
    rule: str


RULES = ("not_a_call", "broken_call", "cut_call", "unclosed_call", "broken_message", "dropped_call")
"""`not_a_call`: markup that never became a call, given back as text. `broken_call`: a real call that
broke, given back or left unfinished. `cut_call`: cut off by the token limit. `unclosed_call`: its
closing marker was missing and forgiven. `broken_message`: a message given back whole.
`dropped_call`: left out because of `parallel_tool_calls: false`, or one too many."""

Event = Reasoning | Content | CallStart | CallArguments | CallEnd | Repaired
