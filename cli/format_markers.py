"""The markers of a format, and in a few words what each means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from streamsieve.cli.format_trials import asked
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.parsers.results import ToolCall

Meaning = tuple[str, str]
"""What markers mean, and the markers."""


def code(text: str) -> str:
    """Text as inline code on one line, whatever backticks are in it."""
    shown = text.replace("\n", "\\n")
    fence = "``" if "`" in shown else "`"
    if "``" in shown:
        fence = "````"
    edge = " " if "`" in (shown[:1], shown[-1:]) or (shown[:1] == shown[-1:] == " ") else ""
    return f"{fence}{edge}{shown}{edge}{fence}"


def meanings(format: Format) -> Iterator[Meaning]:
    """What the markers of a format mean, those without any left out."""
    found: list[Meaning] = []
    if format.messages:
        found += ((meaning, code(marker)) for marker, meaning in format.messages.markers.items())
    if format.reasoning:
        found += _thinking(format.reasoning)
    if format.calls:
        found += _calls(format.calls)
        call = ToolCall("", "NAME", json.dumps({"KEY": "VALUE"}))
        found += [("how a call is written", code(format.calls.write([call], asked(format))))]
    found += (
        ("dropped between texts", _all(format.separators)),
        ("dropped where an answer begins", _all(format.lead_ins)),
        ("tags in a text, dropped", _all(format.annotations)),
        ("end of the turn, dropped", _all(format.ends)),
    )
    return ((meaning, markers) for meaning, markers in found if markers)


def _thinking(span: ReasoningSpan) -> Iterator[Meaning]:
    yield "round thinking", _pairs(span.pairs)
    yield "counts as the opener at a reply's start", _all((span.lost_opener,))
    yield "ends thinking too", _all(span.enders)
    yield "ends thinking as well", "a call that has become certain" if span.ends_at_call else ""
    yield "opens thinking again in an answer", _all(span.reopeners)
    if span.stray_closer == "dropped":
        yield "dropped in an answer", _all(closer for _, closer in span.pairs)
    if span.repeated_opener == "dropped":
        yield "dropped in thinking", _all(span.openers)
    yield "dropped in thinking too", _all(span.framing)
    yield "may stand round the answer, dropped", _pairs(span.answer)
    if span.opened_by:
        yield "a reply starts in thinking all the same with", code(" = ".join(map(str, span.opened_by)))
    if span.content_key:
        yield "makes reasoning that is all of a reply its content", code(span.content_key)


def _calls(calls: CallSyntax) -> Iterator[Meaning]:
    yield "round a group of calls", _pairs(calls.groups)
    yield "a call begins", _all(calls.openers)
    yield "begins a call in a group too", _all(calls.group_starts)
    yield "begins a call where the answer begins", _all(calls.answer_starts)
    yield "and behind", _all(calls.answer_restarts)
    yield "begins a call where a line begins", _all(calls.line_starts)
    yield "a call ends", _all(calls.closers)
    yield "how many calls a reply has", "one" if calls.calls_in_reply == "one" else ""


def _all(markers: Iterable[str]) -> str:
    return ", ".join(code(marker) for marker in dict.fromkeys(markers) if marker)


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{code(opener)} … {code(closer)}" if closer else code(opener) for opener, closer in pairs)
