"""Whether a format reads what a chat template writes: its turns parsed back and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from streamsieve.backends.template_turns import CALLS, QUESTION, REASONING, TOOLS, Portrait, Turn
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message

_THINKING = re.compile("think|thought", re.IGNORECASE)
"""What all families have in the markers that a prompt can end in."""

Calls = Sequence[tuple[str, object]]
"""Names and arguments."""


@dataclass(frozen=True, slots=True)
class Said:
    """What of a message is compared; white space at the ends of texts is not."""

    reasoning: str | None
    content: str | None
    calls: Calls

    @classmethod
    def of(cls, message: Message) -> Said:
        """The trays of a parsed reply."""
        calls = [(call.name, _value(call.arguments)) for call in message.tool_calls]
        return cls(_stripped(message.reasoning), _stripped(message.content), calls)

    def __str__(self) -> str:
        calls = "; ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in self.calls)
        return f"reasoning {self.reasoning!r}, content {self.content!r}, tool_calls {calls or 'none'}"


@dataclass(frozen=True, slots=True)
class Misfit:
    """A turn that did not come out as it went in."""

    turn: Turn
    reply: str
    put_in: Said
    came_out: Said
    fits_with_prompt: bool
    """Whether it would, if the parser saw what the prompt ends in."""


@dataclass(frozen=True, slots=True)
class Fit:
    """All turns came out as they went in. `exact`: to the last line break; `notes`: what was not asked of them."""

    exact: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which trays somebody reads; the others are not judged. `prompt_tail`: what the sieve will be told."""

    reasoning: bool = True
    calls: bool = True
    prompt_tail: str | None = None


def check(format: Format, portrait: Portrait, template: str, wanted: Wanted) -> Fit | Misfit:
    """Parse back one turn of each mode of thinking, with two calls where the template can write two.

    Where content stands beside calls the template may leave it out, or the format may not read it there
    (a list that counts only at the start of a reply); then the turn without it decides.
    """
    exact, notes = True, dict[str, None]()
    for turns in _by_mode(portrait):
        last: Misfit | None = None
        for candidates in _alternatives(turns, wanted):
            outcomes = [_parsed_back(format, turn, template, wanted) for turn in candidates]
            fits = [outcome for outcome in outcomes if isinstance(outcome, Fit)]
            if fits:
                best = max(fits, key=lambda fit: fit.exact)
                exact &= best.exact
                notes |= dict.fromkeys(best.notes)
                break
            last = last or next(outcome for outcome in outcomes if isinstance(outcome, Misfit))
        else:
            if last:
                return last
    return Fit(exact, tuple(notes))


def knows_thinking(span: ReasoningSpan, template: str) -> bool:
    """Whether the template has anything of the format's thinking in it."""
    return any(marker.strip() in template for marker in (*span.openers, *span.closers))


def writes_calls(portrait: Portrait) -> bool:
    """Whether the template writes calls at all."""
    return any(turn.shape.calls and turn.is_whole for turn in portrait.turns)


def writes_thinking(portrait: Portrait) -> bool:
    """Whether the template writes thinking, into a turn or into the prompt, where it opens or closes it."""
    in_prompt = any(map(_THINKING.search, portrait.tails.values()))
    return in_prompt or any(turn.writes_thinking for turn in portrait.turns)


def _by_mode(portrait: Portrait) -> Iterator[Sequence[Turn]]:
    for _, turns in groupby(portrait.turns, key=lambda turn: turn.mode):
        yield [*turns]


def _alternatives(turns: Sequence[Turn], wanted: Wanted) -> Iterator[Sequence[Turn]]:
    """Turns that say the same in different shapes; the fullest first, of those with the most calls."""
    counts = (2, 1, 0) if wanted.calls else (0,)
    whole = [turn for turn in turns if turn.is_whole]
    most = next((count for count in counts if any(turn.shape.calls == count for turn in whole)), 0)
    for _, same in groupby((turn for turn in whole if turn.shape.calls == most), key=lambda turn: turn.shape.content):
        yield [*same]


def _parsed_back(format: Format, turn: Turn, template: str, wanted: Wanted) -> Fit | Misfit:
    request = Request.from_body({"tools": [*TOOLS], "chat_template_kwargs": turn.kwargs})
    reply, reasoning, notes = turn.reply, REASONING if turn.thinks else None, []
    if turn.thinks and not turn.writes_thinking:
        if format.reasoning and knows_thinking(format.reasoning, template):
            reply = _with_thinking(format.reasoning, turn, request)
            notes.append("the template leaves thinking out of past turns, so the check wrote it as the parser has it")
        else:
            reasoning = None
            notes.append("the template writes no thinking")
    calls = CALLS[: turn.shape.calls]
    if len(calls) < len(CALLS) and wanted.calls:
        notes.append("the template writes one call a turn" if calls else "the template writes no calls")
    if calls and not turn.shape.content:
        notes.append(
            "calls without text before them: the template leaves it out, or the parser reads no calls behind it"
        )
    put_in = Said(reasoning, turn.shape.content or None, calls)
    came_out = _read(format, reply, request, wanted.prompt_tail)
    if _agree(put_in, came_out, wanted):
        return Fit(_agree(put_in, came_out, wanted, exact=True), tuple(notes))
    seen = _read(format, reply, request, turn.prompt.rpartition(QUESTION)[2])
    return Misfit(turn, reply, put_in, came_out, _agree(put_in, seen, wanted))


def _with_thinking(span: ReasoningSpan, turn: Turn, request: Request) -> str:
    """The reply with thinking before it, behind what the prompt ends in; an empty one that is there gives way."""
    rest = turn.reply
    for opener, closer in span.pairs:
        rest = re.sub(rf"\A\s*(?:{re.escape(opener)}\s*)?{re.escape(closer)}\s*", "", rest)
    tail = turn.prompt.rpartition(QUESTION)[2]
    return span.write(f"{REASONING}\n", replace(request, prompt_tail=tail)) + rest


def _read(format: Format, reply: str, request: Request, prompt_tail: str | None) -> Said:
    return Said.of(read(format, [reply], replace(request, prompt_tail=prompt_tail), whole=True))


def _agree(put_in: Said, came_out: Said, wanted: Wanted, *, exact: bool = False) -> bool:
    calls = _plain(put_in.calls, exact) == _plain(came_out.calls, exact)
    if not wanted.reasoning:  # where the thinking stays in the content, that cannot be judged
        return calls
    return calls and (put_in.reasoning, put_in.content) == (came_out.reasoning, came_out.content)


def _plain(calls: Calls, exact: bool) -> Calls:
    return [(name, value if exact else _without_edges(value)) for name, value in calls]


def _without_edges(value: object) -> object:
    """Arguments without the white space at the ends of strings, which some families do not keep."""
    if not isinstance(value, Mapping):
        return value
    return {key: one.strip() if isinstance(one, str) else one for key, one in value.items()}


def _stripped(text: str | None) -> str | None:
    return (text or "").strip() or None


def _value(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
