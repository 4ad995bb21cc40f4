"""Beam: Harmony's tokens in fixed openers, and calls with their parameters between tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers.arguments.declared_order import cast_in_order, types_in_order
from streamsieve.parsers.arguments.schema_types import Typing
from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.labels import QUOTED
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.parameter_tags import parameters
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.message_tags import MessageTags
from streamsieve.parsers.messages import Bodies, MessageSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reading
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject, sequence, text
from streamsieve.parsers.trays import Trays

_ROLE = "<|start|>assistant"
_ANALYSIS, _FINAL = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"
_TO, _XML = " to=", "<|channel|>analysis <|constrain|>xml<|message|>"
_END, _RETURN, _CALL = "<|end|>", "<|return|>", "<|call|>"
_NEXT = _END + _ROLE
_CUT_NEXT = (_END + "<|start|>", _END)  # they close a region where the reply ends behind them

_OPENERS = Markers((_ANALYSIS, _FINAL, _TO, _ROLE, _RETURN, _CALL, _END))
_ANALYSIS_ENDS = Markers((_NEXT, *_CUT_NEXT))
_CALL_ENDS = (_CALL, _NEXT, *_CUT_NEXT)
_NAME = re.compile(r"[^\s<]*")
_OPEN_CALL = re.compile(f"{_TO}([^\\s<]+){re.escape(_XML)}")

_PARAMETERS = TaggedCalls(
    openers=(_TO,),
    closers=_CALL_ENDS,
    name_close=_XML,
    parameter=Parameter(open="<rfl:parameter name=", label=QUOTED, key_close=">", value_close="</rfl:parameter>"),
    ends_unclosed_value=("<rfl:parameter name=",),
    line_break="\n",
    real_at="head",
    typing=Typing(types=types_in_order, convert=cast_in_order),
)


@dataclass(frozen=True, kw_only=True)
class BeamMessages(MessageSyntax):
    """Regions, each between an opener and its own closers; the text outside them is content."""

    thinking_end: ClassVar[str] = _END
    markers: ClassVar[Mapping[str, str]] = {
        _ANALYSIS: "thinking begins",
        _FINAL: "the answer begins",
        _TO: f"a call begins: the name, then `{_XML}`",
        _NEXT: "the region ends, another begins",
        _PARAMETERS.parameter.write("KEY", "VALUE", "VALUE", ""): "a parameter",
    }

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply."""
        return _Reply(calls, trays, request).read()

    def write(self, message: Message, request: Request) -> str:
        """Thinking, then the answer, then the calls, one message each."""
        messages = [f"{_ANALYSIS}{message.reasoning}"] if message.reasoning else []
        if message.content:
            messages.append(f"{_FINAL}{message.content}")
        for call in message.tool_calls:
            messages.append(_PARAMETERS.write([call], request).removesuffix(f"\n{_CALL}"))
        last = _CALL if message.tool_calls else _RETURN if message.content else _NEXT
        return _NEXT.join(messages) + last if messages else ""

    def tag(self, demand: Demand, request: Request) -> JsonObject:
        """Calls and the answer as they must be, thinking free."""
        return MessageTags(
            start=_ROLE,
            thought=_ANALYSIS,
            aside=_FINAL,
            answer=_FINAL,
            body=text([_ROLE, _ANALYSIS, _FINAL, _XML, *_CALL_ENDS, _RETURN]),
            call=_call_tag,
            end=_END,
            call_end=_END,
            lasts=(_RETURN, _END),
            call_lasts=(_CALL, _END),
        ).reply(demand)


def _call_tag(name: str, schema: JsonSchema) -> JsonObject:
    return sequence(_PARAMETERS.write_name(name), parameters(_PARAMETERS, name, schema))


class _Reply:
    """One reply, read region by region."""

    def __init__(self, calls: CallWriter, trays: Trays, request: Request) -> None:
        self._calls = calls
        self._trays = trays
        self._request = request
        self._reader = calls.reader
        self._answer = Bodies(calls, trays, closers=(_RETURN, _CALL, _NEXT, _END), openers=())
        self._tool = Bodies(calls, trays, closers=_CALL_ENDS, openers=())
        calls.boundaries = Markers.of(*_CALL_ENDS, _TO, _ANALYSIS, _FINAL)

    def read(self) -> Reading[None]:
        """Read the whole reply."""
        reader, trays = self._reader, self._trays
        yield from self._open_region(self._request.prompt_tail or "")
        while True:
            reader.forget()
            marker = yield from reader.find(_OPENERS, trays.content)
            if marker is None:
                return
            mark = reader.keep(len(marker))
            if marker == _TO:
                yield from self._addressed(mark)
                continue
            trays.marked = True
            if marker == _ANALYSIS:
                yield from self._analysis()
            elif marker == _FINAL:
                yield from self._answer.text(trays.content)

    def _open_region(self, tail: str) -> Reading[None]:
        """The region in which the prompt ended, if it ended in one."""
        if tail.endswith(_ANALYSIS):
            yield from self._analysis()
        elif tail.endswith(_FINAL):
            yield from self._answer.text(self._trays.content)
        elif found := _OPEN_CALL.fullmatch(tail, max(tail.rfind(_TO), 0)):
            yield from self._message(found[1], self._reader.keep())

    def _analysis(self) -> Reading[None]:
        """Thinking, through its closer. A closer that is cut counts where the reply ends behind it."""
        reader, write = self._reader, self._trays.reasoning
        self._trays.marked = True
        reader.forget()
        while (marker := (yield from reader.find(_ANALYSIS_ENDS, write))) in _CUT_NEXT:
            try:
                yield from reader.peek()
            except EndOfText:
                return
            write(marker)

    def _addressed(self, mark: int) -> Reading[None]:
        """A call's message behind ` to=`, which is text where no whole header follows."""
        reader = self._reader
        try:
            name = yield from reader.run(_NAME)
            yield from reader.take(_XML)
            if not name:
                raise Malformed
        except (Malformed, EndOfText):
            reader.rewind(mark + len(_TO))
            self._trays.content(_TO)
        else:
            yield from self._message(name, mark)

    def _message(self, name: str, mark: int) -> Reading[None]:
        if self._request.parse_calls:
            yield from self._tool.call(mark, self._call(name))
        else:
            yield from self._tool.give_back(mark)

    def _call(self, name: str) -> Reading[None]:
        """The parameters of a call. One without any may end where the reply does."""
        reader, calls = self._reader, self._calls
        try:
            yield from reader.peek_after_space()
        except EndOfText:
            if reader.cut:
                raise
            calls.whole(name, "{}")
            yield from calls.close(_CALL_ENDS)
        else:
            yield from _PARAMETERS.read_arguments(calls, name)


BEAM = Format(
    name="beam",
    tool_names=("beam",),
    reasoning_names=("beam",),
    messages=BeamMessages(),
    ends=(_RETURN, _CALL, _END),
)

FORMATS = (BEAM,)
