"""Whether a format reads what a chat template writes: its turns parsed back and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from streamsieve.backends.template_turns import CALLS, QUESTION, REASONING, TOOLS, Portrait, Turn
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.reasoning import Opening, ReasoningSpan
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message

_THINKING = re.compile("think|thought", re.IGNORECASE)
"""What all families have in the markers that a prompt can end in."""

_LEFT_OUT = "the template leaves thinking out of past turns, so the check wrote it as the parser has it"
_NO_TEXT = "calls without text before them: the template leaves it out, or the parser reads no calls behind it"

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

    @property
    def calls_are_text(self) -> bool:
        """Whether nothing is wrong but that calls behind text were taken for text themselves."""
        content = self.put_in.content
        as_text = not self.came_out.calls and content and (self.came_out.content or "").startswith(content)
        return bool(as_text and self.put_in.reasoning == self.came_out.reasoning)


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
    """Parse back, for each mode of thinking, an answer and a turn with calls: two where the template can write two.

    A prompt tail that is set holds whatever the request says of thinking, so only the default mode is judged with it.
    """
    fits: list[Fit] = []
    known = format.reasoning is not None and knows_thinking(format.reasoning, portrait, template)
    for mode, turns in groupby(portrait.turns, key=lambda turn: turn.mode):
        if mode != "default" and wanted.prompt_tail is not None:
            continue
        whole = [turn for turn in turns if turn.is_whole]
        most = max((turn.shape.calls for turn in whole), default=0)
        for count in dict.fromkeys((0, most if wanted.calls else 0)):
            same = [turn for turn in whole if turn.shape.calls == count]
            outcome = _parsed_back(format, same, known, wanted)
            if isinstance(outcome, Misfit):
                return outcome
            fits += [outcome] if outcome else []
    notes = [note for fit in fits for note in fit.notes]
    if wanted.calls and not writes_calls(portrait):
        notes.append("the template writes no tool calls, so none were checked")
    if wanted.reasoning and not writes_thinking(portrait) and _LEFT_OUT not in notes:
        notes.append("the template writes no thinking")
    return Fit(all(fit.exact for fit in fits), tuple(dict.fromkeys(notes)))


def knows_thinking(span: ReasoningSpan, portrait: Portrait, template: str) -> bool:
    """Whether the template has anything of the format's thinking in it, or writes it."""
    texts = (template, *portrait.tails.values(), *(turn.reply for turn in portrait.turns))
    return any(marker.strip() in text for marker in (*span.openers, *span.closers) for text in texts)


def writes_calls(portrait: Portrait) -> bool:
    """Whether the template writes calls at all."""
    return any(turn.shape.calls and turn.is_whole for turn in portrait.turns)


def writes_thinking(portrait: Portrait) -> bool:
    """Whether the template writes thinking, into a turn or into the prompt, where it opens or closes it."""
    in_prompt = any(map(_THINKING.search, portrait.tails.values()))
    return in_prompt or any(turn.writes_thinking for turn in portrait.turns)


def _parsed_back(format: Format, turns: Sequence[Turn], known: bool, wanted: Wanted) -> Fit | Misfit | None:
    """How turns of different shapes come out; one that does decides. None where there is no turn.

    A turn with calls has text before them. Where the template leaves that out, or the format reads no
    calls behind text (a list that counts only at the start of a reply), the turns without it decide.
    `known`: whether the template knows the format's thinking.
    """
    first: Misfit | None = None
    for content, same in groupby(turns, key=lambda turn: turn.shape.content):
        outcomes = [_one_parsed_back(format, turn, known, wanted) for turn in same]
        fits = [outcome for outcome in outcomes if isinstance(outcome, Fit)]
        if fits:
            best = max(fits, key=lambda fit: fit.exact)
            return best if content else replace(best, notes=(*best.notes, _NO_TEXT))
        first = first or next(outcome for outcome in outcomes if isinstance(outcome, Misfit))
        if not first.calls_are_text:
            break
    return first


def _one_parsed_back(format: Format, turn: Turn, known: bool, wanted: Wanted) -> Fit | Misfit:
    request = Request.from_body({"tools": [*TOOLS], "chat_template_kwargs": turn.kwargs})
    reply, reasoning, notes = turn.reply, REASONING if turn.thinks else None, []
    if turn.thinks and not turn.writes_thinking:
        prompted = replace(request, prompt_tail=_tail(turn))
        span = format.reasoning
        if span is None or span.opening(prompted)[0] is Opening.ANSWERED or not known:
            reasoning = None
        else:
            reply = _with_thinking(span, turn, prompted)
            notes.append(_LEFT_OUT)
    if wanted.calls and turn.shape.calls == 1:
        notes.append("the template writes one call a turn")
    put_in = Said(reasoning, turn.shape.content or None, CALLS[: turn.shape.calls])
    came_out = _read(format, reply, request, wanted.prompt_tail)
    if turn.end and not _agree(put_in, came_out, wanted):  # what ends any turn may be half of a marker
        came_out = _read(format, reply + turn.end.rstrip(), request, wanted.prompt_tail)
    if _agree(put_in, came_out, wanted):
        return Fit(_agree(put_in, came_out, wanted, exact=True), tuple(notes))
    seen = _read(format, reply, request, _tail(turn))
    return Misfit(turn, reply, put_in, came_out, _agree(put_in, seen, wanted))


def _with_thinking(span: ReasoningSpan, turn: Turn, prompted: Request) -> str:
    """The reply with thinking before it, behind what the prompt ends in; an empty one that is there gives way."""
    rest = turn.reply
    for opener, closer in span.pairs:
        rest = re.sub(rf"\A\s*(?:{re.escape(opener)}\s*)?{re.escape(closer)}\s*", "", rest)
    return span.write(f"{REASONING}\n", prompted) + rest


def _tail(turn: Turn) -> str:
    return turn.prompt.rpartition(QUESTION)[2]


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
