"""The text of one reply through its parser, as it comes."""

from __future__ import annotations

import logging

from streamsieve.parsers.events import Event
from streamsieve.parsers.tokens import SpecialTokens
from streamsieve.wire.attribution import Attribution, Token, Told, joined, tokens_of
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.parser import Parser, open_parser, verbatim_after
from streamsieve.wire.request.prepared import Prepared

_logger = logging.getLogger(__name__)
_NOTHING: JsonObject = {}


def open_text(prepared: Prepared, index: int, *, whole: bool = False) -> TextReader:
    """Who reads the text of one choice of the reply; the caller closes it. `whole`: it comes in one piece."""
    settings = prepared.settings
    parser = open_parser(settings, prepared.request, whole=whole, heard=prepared.heard(index))
    limit = settings.max_body if whole else settings.max_held
    return TextReader(parser, special=settings.special_tokens, max_held=limit)


class TextReader:
    """Feeds a parser, and tells of its events with the tokens that they are made of.

    `special`: the tokenizer's, where it is known. `max_held`: so many characters may wait for what they
    are to be; then they, and all that comes, is content.
    """

    def __init__(self, parser: Parser, *, special: SpecialTokens | None, max_held: int) -> None:
        self.parser = parser
        self.attribution: Attribution | None = None
        """Made when the upstream first tells of its tokens."""
        self.held = 0
        """How many characters were fed since the last event."""
        self._special = special
        self._max_held = max_held
        self._half = ""
        self._fed = False

    async def feed(self, text: str, given: JsonObject = _NOTHING) -> list[Told]:
        """The next text; `given` is what tells of its tokens (`logprobs`, `token_ids`)."""
        text = self._whole_characters(text)
        tokens = tokens_of(given, text, self._special) if given else []
        if tokens:
            self.attribution = self.attribution or Attribution(from_the_start=not self._fed)
        elif text:
            tokens = [Token(text)]
        else:
            return []
        self._fed = True
        told: list[Told] = []
        for token in tokens:
            if self.attribution:
                self.attribution.push(token)
            if token.text:
                told += self._told(await self.parser.feed(token.text, token.ids or None))
        self.held = 0 if told else self.held + len(text)
        if self.holds_too_much:
            told = await self._give_up()
        return joined(told) if len(told) > 1 else told

    async def events(self, text: str) -> list[Event]:
        """The events alone of the next text; only while the reader `is_steady`."""
        feed_at_once = self.parser.feed_at_once
        events = feed_at_once(text) if feed_at_once else await self.parser.feed(text)
        self.held = 0 if events else self.held + len(text)
        return [told.event for told in await self._give_up() if told.event] if self.holds_too_much else events

    async def finish(self, reason: str | None) -> list[Told]:
        """The text is over. `reason`: the engine's finish reason; None where it broke off."""
        told = self._told(await self.parser.feed(self._half)) if self._half else []
        return told + self._told(await self.parser.finish(reason))

    def rest(self) -> list[int]:
        """The ids, where they are given, that went with no event; after `finish`."""
        return self.attribution.rest() if self.attribution else []

    async def aclose(self) -> None:
        """Free the parser."""
        await self.parser.aclose()

    @property
    def is_steady(self) -> bool:
        """Whether text needs nothing but the parser: no half of a character waits, and nobody counts tokens."""
        return not self._half and self.attribution is None

    @property
    def holds_too_much(self) -> bool:
        """Whether more waits than may."""
        return self.held > self._max_held

    async def _give_up(self) -> list[Told]:
        """What is held is given back, and the rest of the reply is text."""
        _logger.warning("a reply that held more than max_held (%d characters) goes on unparsed", self._max_held)
        self.held = 0
        told = self._told(await self.parser.finish(None))
        await self.parser.aclose()
        self.parser = verbatim_after(self.parser)
        return told

    def _told(self, events: list[Event]) -> list[Told]:
        return self.attribution.told(events) if self.attribution else [Told(event) for event in events]

    def _whole_characters(self, text: str) -> str:
        """`text` without half a surrogate pair at its end, which waits for its other half (contract, rule 11).

        Upstreams that cut their text by UTF-16 units send such halves, as `\\ud83d` and `\\ude00`.
        """
        if self._half:
            text = (self._half + text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return text.removesuffix(self._half)
