"""Replies that a JSON schema has made calls of: plain JSON from the first character of the answer, no markers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamsieve.parsers.arguments.json_text import copy_json
from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.json_object import CallObject, JsonListCalls
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Reading

CALL_LIST = JsonListCalls(
    answer_starts=("[",),
    element=CallObject(argument_keys=("parameters",), without_arguments="refused", others=()),
    empty="refused",
    calls_in_reply="one",
)
"""`[{"name": …, "parameters": {…}}, …]`, and nothing else in the answer."""


@dataclass(frozen=True, kw_only=True)
class BareArguments(CallSyntax):
    """The answer is the arguments of a call of one function that is known beforehand, as a JSON object."""

    function: str

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read the object."""
        yield from calls.reader.peek_after_space()
        calls.start(self.function, None)
        yield from copy_json(calls.reader, calls.arguments, "refused")
        calls.end()

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """The arguments."""
        return "".join(call.arguments for call in calls)


def bare_arguments(function: str) -> BareArguments:
    """The syntax of a reply that is the arguments of `function`."""
    return BareArguments(function=function, answer_starts=("{",), calls_in_reply="one")
