"""One choice of a streamed chat completion: upstream's chunk choices in, the client's out."""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence

from streamsieve.parsers.events import Content, Event
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import finish_reason
from streamsieve.wire.attribution import OF_THE_TEXT, Told, has_tokens, without_tokens
from streamsieve.wire.chat.announcement import Announcements
from streamsieve.wire.chat.delta import TRAYS, Deltas, is_text, normalised, reasoning_names
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.settings import Settings
from streamsieve.wire.text_reader import TextReader

_DELTA = frozenset({"index", "delta"})
_DELTA_AND_TEXT = _DELTA | set(OF_THE_TEXT)
_PLAIN = _DELTA_AND_TEXT | {"finish_reason"}


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
    held. What describes the text (logprobs, token ids) goes out with it, and what describes the choice with
    the last chunk made of it.
    """

    def __init__(self, index: int, text: TextReader, state: State, request: Request, settings: Settings) -> None:
        self.index = index
        self.text = text
        self.state = state
        self.role_sent = False
        self.has_finished = False
        """Whether it had its finish reason."""
        self.announcements = Announcements(index) if settings.announce_calls else None
        self._request = request
        self._tells_reasoning = settings.tells_reasoning
        self._names = reasoning_names(settings.reasoning_field, request.include_reasoning)
        self._deltas = Deltas(self._names)
        self.delta = self._noted if self.announcements else self._deltas.of

    async def read(self, given: JsonObject, keep: bool) -> list[JsonObject]:
        """The chunk choices to send for one that the upstream sent.

        `keep`: the chunk carries something else that has to go out, so at least one is needed.
        """
        delta = given["delta"]
        if not isinstance(delta, dict):
            delta = {}
        if given.get("finish_reason"):
            self.has_finished = True
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
        return self.state is PARSING and self.role_sent and self.text.is_steady

    @property
    def reasoning_tokens(self) -> int | None:
        """How many tokens went into thinking; None where that is not known."""
        attribution = self.text.attribution
        return attribution.reasoning_tokens if attribution and self._tells_reasoning else None

    def is_plain(self, given: JsonObject) -> bool:
        """Whether such a chunk choice is nothing but text, and what goes out for it has the same fields."""
        delta = given["delta"]
        is_text_alone = isinstance(delta, dict) and delta.keys() == {"content"} and not _tells(given, _DELTA)
        return is_text_alone and "index" in given and given.get("finish_reason", ...) is None

    async def _parse(self, given: JsonObject, delta: JsonObject, keep: bool) -> list[JsonObject]:
        text = delta.get("content") or ""
        assert isinstance(text, str)
        beside = {name: value for name, value in delta.items() if name not in TRAYS}
        told = await self.text.feed(text, given)
        if len(told) == 1 and self._is_alone(told[0], text, given, delta):
            only = self.delta(told[0].event)
            return [given if only == delta else {**given, "delta": only}]
        if given.get("finish_reason"):
            told += await self._finish(given["finish_reason"])
        return self._spread(told, beside, given, keep)

    def _is_alone(self, told: Told, text: str, given: JsonObject, delta: JsonObject) -> bool:
        """Whether a chunk is one token and nothing else is to be said of it than what became of its text.

        So it is most often where tokens are told of.
        """
        attribution = self.text.attribution
        return (
            attribution is not None
            and attribution.is_settled
            and len(told.tokens) == 1
            and told.tokens[0].text == text
            and not told.passed
            and (bool(self._names) or isinstance(told.event, Content))
            and self.role_sent
            and delta.keys() == {"content"}
            and given.get("finish_reason", ...) is None
            and "index" in given
            and given.keys() <= _PLAIN
        )

    async def _finish(self, reason: object) -> list[Told]:
        self.state = State.FINISHED
        return await self.text.finish(reason if isinstance(reason, str) else None)

    def _noted(self, event: Event | None) -> JsonObject:
        assert self.announcements is not None
        self.announcements.see(event)
        return self._deltas.of(event)

    def _spread(
        self, told: Sequence[Told], beside: JsonObject, given: JsonObject, keep: bool = False
    ) -> list[JsonObject]:
        """One chunk choice for each event that a client is told of, and one for the finish reason.

        `beside`: what the delta held beside its text.
        """
        out: list[JsonObject] = []
        for one in told:
            if delta := self.delta(one.event):
                out.append(self._chunk(delta, one, {} if out else given))
        reason = given.get("finish_reason") or None  # some upstreams have an empty one until the end
        if self.role_sent:
            beside.pop("role", None)
        if reason is not None or (not out and (keep or any(beside.values()) or _tells(given, _DELTA_AND_TEXT))):
            rest = self.text.rest() if reason is not None else []
            out.append(self._chunk({}, Told(None, passed=rest), {} if out else given))
        if not out:
            return []
        if not self.role_sent:
            self.role_sent = True
            beside["role"] = beside.get("role") or "assistant"
        if beside:
            out[0]["delta"] = beside | first if isinstance(first := out[0]["delta"], dict) else beside
        if isinstance(reason, str):
            reason = finish_reason(reason, self._deltas.calls, self._request)
        of_the_choice = {name: value for name, value in given.items() if name not in OF_THE_TEXT}
        out[-1] = {"index": self.index, **of_the_choice, **out[-1], "finish_reason": reason}
        return out

    def _chunk(self, delta: JsonObject, told: Told, given: JsonObject) -> JsonObject:
        """A chunk choice with this delta and what is said of its text; `given` has what no token is told by."""
        of_the_text = {name: value for name, value in given.items() if name in OF_THE_TEXT}
        if has_tokens(given) or not self._names:  # a shape that is not ours to read may have tokens of the thinking
            of_the_text = dict.fromkeys(of_the_text)
        tokens = told.tokens if self._names else [token for token in told.tokens if token.count == 1]
        logprobs = [entry for token in tokens for entry in token.logprobs]
        ids = [*(told.passed if self._names else ()), *(one for token in tokens for one in token.ids)]
        if logprobs:
            beside = given.get("logprobs") if self._names else None
            of_the_text["logprobs"] = {**(beside if isinstance(beside, dict) else {}), "content": logprobs}
        if ids:
            of_the_text["token_ids"] = ids
        if of_the_text.get("token_ids", ...) is None:
            del of_the_text["token_ids"]
        return {"index": self.index, "delta": delta, "finish_reason": None, **of_the_text}

    def _pass(self, given: JsonObject, delta: JsonObject, keep: bool) -> list[JsonObject]:
        """The chunk choice as it came, normalised; none where that, or an earlier finish, leaves it nothing to say."""
        passed = normalised(delta, self._names)
        if not self._names and (passed != delta or not any(passed.values())):  # these may be tokens of the thinking
            given = without_tokens(given)
        if self.role_sent:
            passed = {name: value for name, value in passed.items() if name != "role"}
        if keep or any(passed.values()) or _tells(given, _DELTA):
            return [{**given, "delta": passed}]
        return [given] if passed == delta and self.state is State.PASSING else []


def _tells(given: JsonObject, known: Collection[str]) -> bool:
    """Whether a chunk's choice says more than what is `known`; null and empty fields say nothing."""
    return any(value and name not in known for name, value in given.items())
