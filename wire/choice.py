"""One choice of a streamed chat completion: upstream's chunk choices in, the client's out."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from streamsieve.parsers.events import Event
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import finish_reason
from streamsieve.wire.delta import TRAYS, Deltas, is_text, normalised
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.parser import Parser

_DELTA = frozenset({"index", "delta"})
_OF_THE_TEXT = ("logprobs", "token_ids")
"""What a chunk's choice says of its delta; whatever else it says is of the choice."""


class State(enum.Enum):
    """Who sorts what comes next of this choice."""

    PARSING = enum.auto()  # we do
    PASSING = enum.auto()  # the upstream does, or nobody
    FINISHED = enum.auto()  # nothing more should come: the reply had its finish reason, or was broken off


PARSING = State.PARSING  # Python 3.11 is slow to look up a member


class Choice:
    """Reads the chunks of one choice index, in order.

    What is read is never changed: an unchanged choice that comes out equals the one that went in.
    Everything that a chunk carries beside the text goes out once and at once, also where the text is
    held: what describes the text (logprobs) with the first chunk made of it, what describes the choice
    with the last.
    """

    def __init__(self, index: int, parser: Parser, state: State, request: Request, names: Sequence[str]) -> None:
        self.index = index
        self.parser = parser
        self.state = state
        self.role_sent = False
        self._half = ""
        self._request = request
        self._names = names
        self._deltas = Deltas(names)
        self.delta = self._deltas.of

    async def read(self, given: JsonObject, keep: bool) -> list[JsonObject]:
        """The chunk choices to send for one that the upstream sent.

        `keep`: the chunk carries something else that has to go out, so at least one is needed.
        """
        delta = given["delta"]
        if not isinstance(delta, dict):
            delta = {}
        if self.state is PARSING:
            if is_text(delta):
                return await self._parse(given, delta, keep)
            held = await self.end()
            self.state = State.PASSING
            return held + self._pass(given, delta, keep)
        if self.state is State.FINISHED:
            given = {**given, "finish_reason": None}
        return self._pass(given, delta, keep)

    async def end(self) -> list[JsonObject]:
        """What was held, where the upstream broke off without a finish reason; none is invented."""
        return self._spread(await self._finish(None), {}, {}) if self.state is PARSING else []

    def open(self) -> list[JsonObject]:
        """The role alone, where the client has not heard of this choice yet and it is time that it does."""
        return [] if self.role_sent or self.state is not PARSING else self._spread([], {}, {}, keep=True)

    @property
    def is_steady(self) -> bool:
        """Whether there is no more to do for text than to parse it."""
        return self.state is PARSING and self.role_sent and not self._half

    def is_plain(self, given: JsonObject) -> bool:
        """Whether such a chunk choice is nothing but text, and what goes out for it has the same fields."""
        delta = given["delta"]
        is_text_alone = isinstance(delta, dict) and delta.keys() == {"content"} and not _tells(given)
        return is_text_alone and "index" in given and given.get("finish_reason", ...) is None

    async def _parse(self, given: JsonObject, delta: JsonObject, keep: bool) -> list[JsonObject]:
        text = self._whole_characters(delta.get("content") or "")
        beside = {name: value for name, value in delta.items() if name not in TRAYS}
        events = await self.parser.feed(text, _token_ids(given)) if text else []
        if given.get("finish_reason"):
            events = events + await self._finish(given["finish_reason"])
        return self._spread(events, beside, given, keep)

    async def _finish(self, reason: object) -> list[Event]:
        self.state = State.FINISHED
        events = await self.parser.feed(self._half) if self._half else []
        return events + await self.parser.finish(reason if isinstance(reason, str) else None)

    def _whole_characters(self, text: object) -> str:
        """`text` without half a surrogate pair at its end, which waits for its other half (contract, rule 11).

        Upstreams that cut their text by UTF-16 units send such halves, as `\\ud83d` and `\\ude00`.
        """
        assert isinstance(text, str)
        if self._half:
            text = (self._half + text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return text.removesuffix(self._half)

    def _spread(
        self, events: Sequence[Event], beside: JsonObject, given: JsonObject, keep: bool = False
    ) -> list[JsonObject]:
        """One chunk choice for each event that a client is told of, and one for the finish reason.

        `beside`: what the delta held beside its text.
        """
        deltas = [delta for event in events if (delta := self.delta(event))]
        reason = given.get("finish_reason") or None  # some upstreams have an empty one until the end
        if self.role_sent:
            beside.pop("role", None)
        if reason is not None or (not deltas and (keep or any(beside.values()) or _tells(given))):
            deltas.append({})
        if not deltas:
            return []
        if not self.role_sent:
            self.role_sent = True
            beside["role"] = beside.get("role") or "assistant"
        if beside:
            deltas[0] = {**beside, **deltas[0]}
        if isinstance(reason, str):
            reason = finish_reason(reason, self._deltas.calls, self._request)
        last = deltas.pop()
        if not deltas:
            return [{"index": self.index, **given, "delta": last, "finish_reason": reason}]
        of_the_text = {name: given[name] for name in _OF_THE_TEXT if name in given}
        of_the_choice = {name: value for name, value in given.items() if name not in _OF_THE_TEXT}
        out: list[JsonObject] = [{"index": self.index, "delta": delta, "finish_reason": None} for delta in deltas]
        out[0] |= of_the_text
        return [*out, {"index": self.index, **of_the_choice, "delta": last, "finish_reason": reason}]

    def _pass(self, given: JsonObject, delta: JsonObject, keep: bool) -> list[JsonObject]:
        """The chunk choice as it came, normalised; none where that, or an earlier finish, leaves it nothing to say."""
        passed = normalised(delta, self._names)
        if self.role_sent:
            passed = {name: value for name, value in passed.items() if name != "role"}
        if keep or any(passed.values()) or _tells(given):
            return [{**given, "delta": passed}]
        return [given] if passed == delta and self.state is State.PASSING else []


def _tells(given: JsonObject) -> bool:
    """Whether a chunk's choice says more than its delta; null and empty fields say nothing."""
    return any(value and name not in _DELTA for name, value in given.items())


def _token_ids(choice: JsonObject) -> Sequence[int] | None:
    """The ids of the delta's text, where the upstream was asked for them (vLLM: `return_token_ids`)."""
    ids = choice.get("token_ids")
    return ids if isinstance(ids, list) and ids else None
