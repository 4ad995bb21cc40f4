"""Salesforce xLAM 2: a JSON list of calls, at the start of the reply or in any of four wrappers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.call_block import CallBlock
from streamsieve.parsers.calls.json_object import CallObject, JsonListCalls
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Reading

_BARE = JsonListCalls(empty="refused", element=CallObject(without_arguments="refused"))
_FENCE = "```"


@dataclass(frozen=True, kw_only=True)
class WrappedListCalls(CallSyntax):
    """A list of calls in one of several wrappers, or in none where the answer starts.

    `wrappers`: opener and closer, which is empty where the list's bracket ends it.
    """

    wrappers: tuple[tuple[str, str], ...]

    def closers_of(self, opener: str) -> tuple[str, ...]:
        """The closer of the wrapper that `opener` opens."""
        return tuple(closer for one, closer in self.wrappers if one == opener and closer)

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read the list and the closer of its wrapper."""
        yield from _BARE.read(calls, opener)
        yield from calls.optional_closer(self.closers_of(opener))

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """The list in the wrapper that may stand behind text."""
        opener, closer = self.wrappers[0]
        return f"{opener}\n{_BARE.write(calls, request)}\n{closer}"

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """The bare list, or one in the first wrapper. Code fences stay free: text has them for code."""
        opener, closer = self.wrappers[0]
        return replace(
            _BARE.block(tools, request),
            opener=opener,
            wrapper=("\n", f"\n{closer}"),
            at_start=(("", ""),),
            starts=self.answer_starts,
            openers=tuple(one for one in self.openers if not one.startswith(_FENCE)),
        )


_WRAPPERS = (("<tool_call>", "</tool_call>"), (f"{_FENCE}json", _FENCE), (_FENCE, _FENCE), ("[TOOL_CALLS]", ""))

XLAM = Format(
    name="xlam",
    tool_names=("xlam",),
    calls=WrappedListCalls(
        wrappers=_WRAPPERS,
        openers=tuple(opener for opener, _ in _WRAPPERS),
        answer_starts=("[",),
        answer_restarts=("</think>",),
        thinking_enders=(),
    ),
    ends=("<|eot_id|>", "<|im_end|>"),
)

FORMATS = (XLAM,)
