"""Mistral: `[TOOL_CALLS]` before one named call (v11 and later) or before a JSON list (older); `[THINK]`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamsieve.parsers.arguments.json_text import copy_json
from streamsieve.parsers.call_ids import mistral_id
from streamsieve.parsers.call_writer import NAME, CallWriter
from streamsieve.parsers.calls.call_block import CallBlock, any_of
from streamsieve.parsers.calls.json_object import CallObject, JsonListCalls
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Malformed, Markers, Reading
from streamsieve.parsers.tag_parts import arguments, sequence

_OPENER, _CALL_ID, _ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_LIST = JsonListCalls(bare="one", element=CallObject(id_key="id", null_arguments="empty"))
_ID = re.compile(r"[A-Za-z0-9]*")


@dataclass(frozen=True, kw_only=True)
class MistralCalls(CallSyntax):
    """Both tool grammars: the first character behind the marker tells them apart."""

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one named call, or a list of calls, its marker taken."""
        if (yield from calls.reader.peek_after_space()) in ("[", "{"):
            yield from _LIST.read(calls, opener)
        else:
            yield from self._named(calls)

    def _named(self, calls: CallWriter) -> Reading[None]:
        reader = calls.reader
        name = yield from reader.run(NAME)
        yield from reader.space()
        native_id = None
        if (yield from reader.takes(Markers.of(_CALL_ID))):
            native_id = yield from reader.run(_ID)
        yield from reader.takes(Markers.of(_ARGS))
        if (yield from reader.peek_after_space()) != "{":
            raise Malformed
        calls.start(name, native_id)
        yield from copy_json(reader, calls.arguments)
        calls.end()

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """Named calls, one marker each, as the v13 tokenizer writes them."""
        return "".join(f"{_OPENER}{call.name}{_ARGS}{call.arguments}" for call in calls)

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """Named calls, one marker each."""
        call = any_of(tools, lambda name, schema: sequence(f"{name}{_ARGS}", arguments(schema)))
        return CallBlock(opener=_OPENER, call=call, between=_OPENER, openers=self.openers)


MISTRAL = Format(
    name="mistral",
    tool_names=("mistral",),
    reasoning_names=("mistral",),
    reasoning=ReasoningSpan(
        pairs=(("[THINK]", "[/THINK]"), ("<think>", "</think>")),
        starts="marked",
        reopeners=("[THINK]",),
        repeated_opener="dropped",
        stray_closer="dropped",
        ends_at_call=True,
        turn_heads=("[/INST]",),
    ),
    calls=MistralCalls(openers=(_OPENER,)),
    ends=("</s>",),
    call_id=mistral_id,
)

FORMATS = (MISTRAL,)
