"""Where the thinking of one reply ends: what is handed over to vLLM's next parser, and from when on.

vLLM reads a reply in two phases, each with a parser of its own. So the machine that reads the thinking
has to stop at its end, and give the rest as the model wrote it, with the markup of calls.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace

from streamsieve.parsers.events import CallStart, Content, Event, Reasoning
from streamsieve.parsers.format import Format, combine
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message


class Thinking:
    """The thinking of one reply, as it comes.

    Thinking ends where the answer's first visible character comes, or a call of the format's own that is
    real (contract, rule 5). `rest`: the text of the reply from there on, None until then; think markers
    and the white space round them are left out. `call_place`: where in the reply the call begins that comes
    right behind the thinking, None where none does. It holds the reply's text up to there.
    """

    def __init__(self, format: Format, request: Request) -> None:
        """`request`: how thinking is switched and what the prompt ended in; its tools do not matter."""
        self.rest: str | None = None
        self.call_place: int | None = None
        self._format = format
        self._request = replace(request, parse_calls=False)
        ends_at_call = format.reasoning is not None and format.reasoning.ends_at_call
        self._machine = format.machine(replace(request, parse_calls=ends_at_call))
        self._raw: list[str] = []
        self._reasoning: list[str] = []

    def feed(self, text: str) -> str:
        """Take the next text, while `rest` is None; returns the thinking that is certain now."""
        self._raw.append(text)
        return self._took(self._machine.feed(text))

    def finish(self) -> str:
        """The reply is over, or nothing more will be fed: returns the last of the thinking."""
        return self._took(self._machine.finish(None))

    def _took(self, events: Iterable[Event]) -> str:
        thought = []
        for event in events:
            match event:
                case Reasoning(text):
                    thought.append(text)
                case Content() | CallStart():
                    self._reasoning += thought
                    self._end(by_call=isinstance(event, CallStart))
                    return "".join(thought)
        self._reasoning += thought
        return "".join(thought)

    def _end(self, *, by_call: bool) -> None:
        raw = "".join(self._raw)
        self.call_place = self._place_of_call(raw) if by_call else None
        if self.call_place is None:
            self.rest = without_calls(self._format, raw, self._request).content or ""
        else:
            self.rest = raw[self.call_place :]

    def _place_of_call(self, raw: str) -> int | None:
        """Where the markup of the call begins that came behind the thinking; None where it has no opener.

        Its opener is the first one up to which `raw` holds all the thinking that there was: openers that
        are only mentioned are thinking themselves.
        """
        calls = self._format.calls
        assert calls is not None, "a call came of a format that has none"
        openers = {*calls.openers, *(opener for opener, _ in calls.groups)}
        places = sorted(place for opener in openers for place in _places(raw, opener))
        first = bisect_left(places, len("".join(self._reasoning)), key=lambda place: self._length(raw[:place]))
        return places[first] if first < len(places) else None

    def _length(self, raw: str) -> int:
        return len(without_calls(self._format, raw, self._request).reasoning or "")


def without_calls(format: Format, text: str, request: Request) -> Message:
    """A reply split in thinking and answer alone; call markup stays in the answer as text."""
    return read(format if format.messages else combine(format, None), [text], replace(request, parse_calls=False))


def _places(text: str, literal: str) -> Iterable[int]:
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + 1)
