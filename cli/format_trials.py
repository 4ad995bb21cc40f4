"""What a format does, found out by trying it: an example, what of it streams, and what a cut leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streamsieve.parsers.conformance import specimens
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.events import CallArguments, CallStart
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message, ToolCall
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject

THOUGHT, ANSWER, PORT = "Both ports, today.", "I look it up.", "Saint-Malo"
_HOURS = [4, 16]
_TIDES = [
    {
        "type": "function",
        "function": {
            "name": "get_tides",
            "parameters": {
                "type": "object",
                "properties": {"port": {"type": "string"}, "hours": {"type": "array", "items": {"type": "integer"}}},
            },
        },
    }
]
_UNWRITTEN = {
    "minimax_m2_append_think": f"{THOUGHT}</think>{ANSWER}",
    "response_template": f"<think>{THOUGHT}</think>{ANSWER}<tool_call>"
    f'{{"name": "get_tides", "arguments": {{"port": "{PORT}", "hours": {_HOURS}}}}}</tool_call>',
}
"""Replies in formats that read more than they can write."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A reply that the token limit ended: where in it, and what came out."""

    where: str
    left: Message


@dataclass(frozen=True, slots=True)
class Trial:
    """A reply as the format writes it, and what was seen in reading it.

    `first_sign`: the text from the call's beginning up to where its name leaves; empty without calls.
    `streamed`: for each kind of value whether it leaves as it comes or when it is complete.
    """

    message: Message
    raw: str
    first_sign: str
    streamed: Mapping[str, bool]
    cuts: tuple[Cut, ...]


def asked(format: Format) -> Request:
    """The request of the trials: one tool, thinking on where the format has a switch for it."""
    return specimens.asked(format, tools=_TIDES)


def structural_tag(format: Format) -> JsonObject:
    """The structural tag of a call of the one tool. Raises Inexpressible where the format has none."""
    request = asked(format)
    demand = Demand(calls="required", tools=request.tools, bound=frozenset(request.tools))
    return format.structural_tag(demand, request)


def attempt(format: Format) -> Trial:
    """Try the format. Raises Inexpressible where it can write neither an answer nor a call.

    Raises ConfigurationError where it cannot read without what its option gives (`hf`).
    """
    request = asked(format)
    raw = _written(format, request)
    message = read(format, [raw], request, whole=True)
    named = _named_at(format, raw, request)
    return Trial(
        message=message,
        raw=raw,
        first_sign=raw[_call_begins(message, raw) : named],
        streamed=dict(_streamed(format, raw, request)) if named else {},
        cuts=tuple(_cuts(format, raw, named, request)),
    )


def _written(format: Format, request: Request) -> str:
    """The fullest message that the format can say, as it writes it."""
    call = ToolCall("", "get_tides", json.dumps({"port": PORT, "hours": _HOURS}))
    calls = [call] if specimens.calls_are_known(format) else []
    thought = THOUGHT if specimens.thinks(format) else None
    attempts = (
        Message(thought, ANSWER, calls),
        Message(thought, None, calls),
        Message(None, ANSWER, calls),
    )
    for message in attempts:
        try:
            return format.render(message, request)
        except Inexpressible as error:
            refused = error
    if format.name in _UNWRITTEN:
        return _UNWRITTEN[format.name]
    raise refused


def _named_at(format: Format, raw: str, request: Request) -> int:
    """Behind how many characters the first call's name leaves; 0 where there is no call."""
    machine = format.machine(request)
    for at, character in enumerate(raw, 1):
        if any(isinstance(event, CallStart) for event in machine.feed(character)):
            return at
    return 0


def _call_begins(message: Message, raw: str) -> int:
    """Where the text tray before the call ends."""
    last = message.content or message.reasoning
    return raw.index(last) + len(last) if last and last in raw else 0


def _streamed(format: Format, raw: str, request: Request) -> Iterator[tuple[str, bool]]:
    """Of a long value of each kind: whether something of it has left when half of it has come."""
    string = raw.index(PORT)
    number = raw.index(str(_HOURS[0]), string)
    for kind, at, length, value in (
        ("strings", string, len(PORT), specimens.PROSE),
        ("other values", number, 1, "123456789" * 40),
    ):
        replaced = raw[:at] + value + raw[at + length :]
        events = format.machine(request).feed(replaced[: at + len(value) // 2])
        yield kind, value[:9] in "".join(event.json for event in events if isinstance(event, CallArguments))


def _cuts(format: Format, raw: str, named: int, request: Request) -> Iterator[Cut]:
    places = {"in thinking": _middle(raw, THOUGHT) if specimens.thinks(format) else 0}
    if named:
        places["in a call, before its name has left"] = named - 1
        places["in a string argument"] = _middle(raw, PORT)
        places["in another argument"] = raw.index(str(_HOURS[0]), raw.index(PORT)) + 1
    for where, at in places.items():
        if at:
            yield Cut(where, read(format, list(raw[:at]), request, "length"))


def _middle(raw: str, text: str) -> int:
    return raw.index(text) + len(text) // 2 if text in raw else 0
