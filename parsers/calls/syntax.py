"""What every call syntax says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.call_block import CallBlock
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Malformed, Reading


@dataclass(frozen=True, kw_only=True)
class CallSyntax(ABC):
    """How a format writes calls.

    `openers`: markers behind which `read` is tried; inside a group only, where there are groups and
    `bare_calls` is `text`.
    `groups`: opener and closer round several calls, each of which has an opener of its own.
    `group_starts`: what a call may also begin with right behind a group's opener, without an opener of its own.
    `group_text`: whether text may stand between a group's opener and its first call.
    `thinking_enders`: the openers that are looked for inside reasoning (None: every one of them, or
    where there are groups the openers of these).
    `answer_starts`: what calls may also begin with where the answer does, without a marker.
    `answer_restarts`: text behind which that counts again.
    `line_starts`: and at the start of a line, behind blanks.
    `calls_in_reply`: how many there may be; behind the one, what looks like a call is text.
    `arguments_out`: when a call's arguments go out. At the end only where later text may change what came before.
    `closers`, `stops`: where the rest of a broken call ends: behind a closer, before a stop (the
    contract's "Where calls end badly"). `stray_closer`: what one is in content where no call is open.
    """

    openers: tuple[str, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    bare_calls: Literal["text", "calls"] = "text"
    group_starts: tuple[str, ...] = ()
    group_text: Literal["content", "refused"] = "content"
    thinking_enders: tuple[str, ...] | None = None
    answer_starts: tuple[str, ...] = ()
    answer_restarts: tuple[str, ...] = ()
    line_starts: tuple[str, ...] = ()
    calls_in_reply: Literal["many", "one"] = "many"
    arguments_out: Literal["as they come", "at the end"] = "as they come"
    closers: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    stray_closer: Literal["text", "dropped"] = "text"

    def of(self, request: Request) -> CallSyntax:
        """What reads the calls of the reply to `request`. Raises ConfigurationError where it asks for none that is."""
        return self

    def closers_of(self, opener: str) -> tuple[str, ...]:
        """The closers of calls behind `opener` (empty at a start)."""
        return self.closers

    @abstractmethod
    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read what stands behind `opener` (empty at a start).

        Raises Malformed at the first character that the syntax cannot have there. Leaves text that
        follows unread.
        """

    @abstractmethod
    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """The calls as the format writes them, one after another."""

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """The grammar of calls of `tools`, each with the schema that its arguments follow.

        Raises Inexpressible where there is none, as here.
        """
        raise Inexpressible(f"{type(self).__name__} has no grammar of its calls")


@dataclass(frozen=True, kw_only=True)
class NoCalls(CallSyntax):
    """The syntax of a format that has no calls."""

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Nothing is a call."""
        raise Malformed
        yield

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """Nothing is written."""
        return ""
