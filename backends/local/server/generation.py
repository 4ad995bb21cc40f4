"""One choice of a reply: a job's tokens in, pieces of text out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from streamsieve.backends.local.engine.jobs import EngineFailed, Job
from streamsieve.backends.local.sampling.token import Token
from streamsieve.backends.local.server.detokenizer import Detokenizer
from streamsieve.backends.local.server.stop_strings import Stop, StopStrings
from streamsieve.backends.reply import Piece, TokenLogprob

Run = Callable[[Job], AsyncGenerator[Sequence[Token], None]]
"""`Engine.generate`."""

LEAST_LOGPROB = -9999.0
"""JSON has no infinity; OpenAI's API sends this for a token that cannot come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What ends a choice beside `max_tokens`.

    `eos_token_ids`: the tokens that end a turn. `stop_token_ids`: those that the request adds. `strings` are
    looked for in the text, once `min_tokens` tokens have come. `include`: what ended it stays in the text.
    `kept`: end tokens that stay there in any case, since the parser on top reads them.
    """

    eos_token_ids: frozenset[int]
    stop_token_ids: frozenset[int] = frozenset()
    strings: Sequence[str] = ()
    min_tokens: int = 0
    include: bool = False
    kept: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Unit:
    """Tokens that make whole characters together, and their text."""

    text: str
    tokens: list[Token]


@dataclass(slots=True, eq=False)
class Generation:
    """Runs `job`, and says how many tokens it took, also of one that was cancelled.

    `texts`: the bytes of each token of the vocabulary, for logprobs. `tells_ids`: whether pieces have token ids.
    """

    run: Run
    job: Job
    detokenizer: Detokenizer
    ending: Ending
    texts: Sequence[bytes]
    tells_ids: bool = True
    tokens: int = field(default=0, init=False)
    _waiting: list[Token] = field(default_factory=list, init=False)
    _held: list[_Unit] = field(default_factory=list, init=False)

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """The choice. Raises as `Engine.generate` does; closing it cancels the job."""
        stops = StopStrings(self.ending.strings)
        async with aclosing(self.run(self.job)) as steps:
            async for step in steps:
                last = self._take(step)
                if stop := self._found(stops):
                    yield self._stopped(stop)
                    return
                if last is None and (piece := self._released(stops)):
                    yield piece
        if self.job.finish_reason not in ("stop", "length"):
            raise EngineFailed(f"the job ended with {self.job.finish_reason!r}")
        yield self._last()

    def _take(self, step: Sequence[Token]) -> Token | None:
        """Hold the tokens of a step; the one that ends the reply, where it is among them, is returned."""
        for token in step:
            self.tokens += 1
            self._waiting.append(token)
            ends = token.id in self.job.stop_token_ids
            if ends and not self.ending.include and token.id not in self.ending.kept:
                return token  # its text is for nobody
            if text := self.detokenizer.feed(token.id):
                self._held.append(_Unit(text, self._waiting))
                self._waiting = []
            if ends:
                return token
        return None

    def _found(self, stops: StopStrings) -> Stop | None:
        return stops.find(self._text()) if self.tokens >= self.ending.min_tokens else None

    def _text(self) -> str:
        return "".join(unit.text for unit in self._held)

    def _released(self, stops: StopStrings) -> Piece | None:
        """What can no longer be part of a stop string, in whole units: ids go out beside their text."""
        safe = stops.safe(self._text()) if self.tokens >= self.ending.min_tokens else len(self._text())
        count = size = 0
        for unit in self._held:
            size += len(unit.text)
            if size > safe:
                break
            count += 1
        released, self._held = self._held[:count], self._held[count:]
        return self._piece(released) if released else None

    def _stopped(self, stop: Stop) -> Piece:
        """All up to the stop string."""
        end = stop.end if self.ending.include else stop.start
        kept: list[_Unit] = []
        size = 0
        for unit in self._held:
            if size >= end:
                break
            kept.append(_Unit(unit.text[: end - size], unit.tokens))
            size += len(unit.text)
        return self._piece(kept, "stop", stop.text)

    def _last(self) -> Piece:
        """All that is held. Half a character at the end is dropped; its tokens are not."""
        ended_by = self._waiting[-1].id if self._waiting else (self._held[-1].tokens[-1].id if self._held else None)
        reason = self.job.finish_reason
        asked = reason == "stop" and ended_by in self.ending.stop_token_ids - self.ending.eos_token_ids
        return self._piece([*self._held, _Unit("", self._waiting)], reason, ended_by if asked else None)

    def _piece(
        self, units: Sequence[_Unit], finish_reason: str | None = None, stop_reason: int | str | None = None
    ) -> Piece:
        tokens = [token for unit in units for token in unit.tokens]
        return Piece(
            text="".join(unit.text for unit in units),
            token_ids=[token.id for token in tokens] if self.tells_ids else None,
            logprobs=list(self._logprobs(tokens)) if self.job.sampling.logprobs is not None else None,
            finish_reason=finish_reason,
            stop_reason=stop_reason,
        )

    def _logprobs(self, tokens: Sequence[Token]) -> Iterator[TokenLogprob]:
        for token in tokens:
            top = [self._logprob(id, logprob) for id, logprob in token.top]
            yield self._logprob(token.id, token.logprob or 0.0, top)

    def _logprob(self, id: int, logprob: float, top: Sequence[TokenLogprob] = ()) -> TokenLogprob:
        text = self.texts[id] if id < len(self.texts) else b""
        return TokenLogprob(text.decode(errors="replace"), text, max(logprob, LEAST_LOGPROB), top)
