"""Formats whose messages fill all three trays: what every such grammar says of itself, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Literal

from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reading, Write
from streamsieve.parsers.tag_parts import JsonObject
from streamsieve.parsers.trays import Trays

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format
    from streamsieve.parsers.structural_tag import Demand


class Tray(Enum):
    """Where the body of a message goes."""

    REASONING = auto()
    CONTENT = auto()
    CALL = auto()
    NOBODY = auto()


@dataclass(frozen=True, kw_only=True)
class MessageSyntax(ABC):
    """How a format writes a reply as messages, each with a header that says which tray its body goes to.

    `markers`: what means something in a reply, and what, in a few words.
    `one_name`: what choosing the format by only one of its names reads, all trays or what that name says.
    `thinking_end`: the marker that ends a message of thinking; empty where none does.
    """

    markers: ClassVar[Mapping[str, str]] = {}
    one_name: ClassVar[Literal["all trays", "its own"]] = "all trays"
    thinking_end: ClassVar[str] = ""

    @abstractmethod
    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply. A message that goes wrong is given back whole (contract, rule 7)."""

    @abstractmethod
    def write(self, message: Message, request: Request) -> str:
        """The message as the format writes it."""

    def tag(self, demand: Demand, request: Request) -> JsonObject:
        """The grammar of a reply that is as `demand` has it. Raises Inexpressible where there is none, as here."""
        raise Inexpressible(f"{type(self).__name__} has no grammar of its replies")

    def combined(self, reasoning: Format | None, tools: Format | None) -> Format | None:
        """The format of a reply read by these two, one of which is of this syntax; None where that cannot be."""
        return None


@dataclass(frozen=True, kw_only=True)
class OneOfBoth(MessageSyntax):
    """A message format of which only what its tool parser's or its reasoning parser's name says is read.

    `untold`: what is not told apart then. Thinking is content without its markers; calls are text.
    """

    syntax: MessageSyntax
    untold: Literal["reasoning", "calls"]

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply."""
        trays.folded = self.untold == "reasoning"
        told = replace(request, parse_calls=False) if self.untold == "calls" else request
        return self.syntax.read(calls, trays, told)

    def write(self, message: Message, request: Request) -> str:
        """The message as the format writes it."""
        return self.syntax.write(message, request)

    def tag(self, demand: Demand, request: Request) -> JsonObject:
        """The grammar of the whole format."""
        return self.syntax.tag(demand, request)


class Bodies:
    """The bodies of one reply's messages, and what becomes of a message that goes wrong.

    `closers` end a message and belong to it; before `openers` the next one begins. A message that may
    have to be given back is known by its mark, the offset of its first character, kept in the reader.
    """

    def __init__(self, calls: CallWriter, trays: Trays, *, closers: Iterable[str], openers: Iterable[str]) -> None:
        self._calls = calls
        self._trays = trays
        self._reader = calls.reader
        self._openers = frozenset(openers)
        self.ends = calls.boundaries = Markers.of(*closers, *sorted(self._openers))

    def text(self, write: Write) -> Reading[None]:
        """Take a body of text through its end, and give it to `write`; nothing of it can be given back."""
        self._trays.marked = True
        self._reader.forget()
        yield from self._skip(write)

    def call(self, mark: int, body: Reading[None]) -> Reading[None]:
        """Let `body` read the one call of the message that began at `mark`, through its end."""
        calls = self._calls
        calls.open()
        calls.begin(self._reader.offset - mark)
        try:
            yield from body
        except (Malformed, EndOfText) as error:
            if calls.state is not CallState.REAL:
                yield from self.give_back(mark)
            elif not calls.stays_cut(ended=isinstance(error, EndOfText)):
                yield from self.give_back(mark) if calls.holding else self._skip(nowhere)

    def give_back(self, mark: int) -> Reading[None]:
        """The message that began at `mark`, through its end, is content (contract, rule 7)."""
        yield from self._skip(nowhere)
        self.was_text(mark)

    def was_text(self, mark: int) -> None:
        """What was read from `mark` on is no message: it is content."""
        self._trays.repaired(mark, "broken_message")
        self._trays.content(self._reader.since(mark))

    def _skip(self, write: Write) -> Reading[None]:
        marker = yield from self._reader.find(self.ends, write)
        if marker in self._openers:
            self._reader.position -= len(marker)


def nowhere(text: str) -> None:
    """Takes text that is addressed to nobody, or is given back from elsewhere."""
