"""Inkling: content blocks, each behind a marker that says its kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.json_object import CallObject
from streamsieve.parsers.format import Format
from streamsieve.parsers.message_tags import MessageTags
from streamsieve.parsers.messages import Bodies, MessageSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import Markers, Reading
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject, sequence, text
from streamsieve.parsers.trays import Trays

_ROLE = "<|message_model|>"
_TEXT, _THINKING, _CALL = "<|content_text|>", "<|content_thinking|>", "<|content_invoke_tool_json|>"
_KINDS = (_TEXT, _THINKING, _CALL, "<|content_invoke_tool_text|>", "<|content_tool_error|>")
_END = "<|end_message|>"
_ENDS = (_END, "<|content_model_end_sampling|>")

_MARKERS = Markers((_ROLE, *_KINDS, *_ENDS))
_WORD = re.compile(r"[^\s<]*")
_WRAPPER = CallObject(argument_keys=("args",))


@dataclass(frozen=True, kw_only=True)
class InklingBlocks(MessageSyntax):
    """`[<|message_model|>] header KIND body END`, block after block."""

    thinking_end: ClassVar[str] = _END
    markers: ClassVar[Mapping[str, str]] = {
        _ROLE: "a block begins, a call's name behind it",
        _TEXT: "the body is content",
        _THINKING: "the body is reasoning",
        _CALL: "the body is a call",
        _END: "the block ends",
    }

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply."""
        return _Reply(calls, trays, request).read()

    def write(self, message: Message, request: Request) -> str:
        """One block for each body, the reply's first role marker being the prompt's."""
        blocks = [f"{_THINKING}{message.reasoning}{_END}"] if message.reasoning else []
        if message.content:
            blocks.append(f"{_TEXT}{message.content}{_END}")
        for call in message.tool_calls:
            blocks.append(f"{call.name}{_CALL}{_WRAPPER.write(call)}{_END}")
        return _ROLE.join(blocks)

    def tag(self, demand: Demand, request: Request) -> JsonObject:
        """Blocks of calls and of the answer as they must be, thinking free."""
        return MessageTags(
            start=_ROLE,
            thought=_THINKING,
            aside=_TEXT,
            answer=_TEXT,
            body=text([_ROLE, *_KINDS, *_ENDS]),
            call=_call_tag,
            end=_END,
            call_end=_END,
            lasts=(_END,),
            call_lasts=(_END,),
        ).reply(demand)


def _call_tag(name: str, schema: JsonSchema) -> JsonObject:
    return sequence(f"{name}{_CALL}", _WRAPPER.tag(name, schema))


class _Reply:
    """One reply, read block by block."""

    def __init__(self, calls: CallWriter, trays: Trays, request: Request) -> None:
        self._calls = calls
        self._trays = trays
        self._request = request
        self._reader = calls.reader
        self._bodies = Bodies(calls, trays, closers=_ENDS, openers=(_ROLE,))
        self._thinking = Bodies(calls, trays, closers=_ENDS, openers=(_ROLE, *_KINDS))

    def read(self) -> Reading[None]:
        """Read the whole reply."""
        reader = self._reader
        kind = _open_kind(self._request.prompt_tail or "")
        if kind:
            yield from self._body(kind, reader.keep())
        while not reader.is_over:
            reader.forget()
            mark = reader.keep()
            if (yield from reader.takes(_ROLE_MARKER)):
                self._trays.marked = True
                yield from self._message(mark)
            else:
                yield from self._headless(mark)

    def _message(self, mark: int) -> Reading[None]:
        """A block behind its role marker. One without a kind never opened: it is text, if there is any."""
        header: list[str] = []
        marker = yield from self._reader.find(_MARKERS, header.append)
        if marker in _KINDS:
            yield from self._block(marker, "".join(header), mark)
            return
        if marker == _ROLE:
            self._reader.position -= len(_ROLE)
        if "".join(header).strip():
            self._bodies.was_text(mark)

    def _headless(self, mark: int) -> Reading[None]:
        """Text behind no role marker: one word of it may be the header of a block, and other text is content."""
        reader, trays = self._reader, self._trays
        header = yield from reader.space()
        header += yield from reader.run(_WORD)
        header += yield from reader.space()
        marker = yield from reader.takes(_MARKERS)
        if marker is None:
            reader.forget()
            trays.content(header)
            header = ""
            marker = yield from reader.find(_MARKERS, trays.content)
            mark = reader.keep(len(marker or ""))
        if marker in _KINDS:
            yield from self._block(marker, header, mark)
            return
        trays.content(header)
        if marker == _ROLE:
            reader.position -= len(_ROLE)

    def _block(self, kind: str, header: str, mark: int) -> Reading[None]:
        """A block of this kind. Its header names the function of a call; elsewhere it is text like any other."""
        if kind != _CALL and header.strip():
            self._trays.content(header)
        yield from self._body(kind, mark)

    def _body(self, kind: str, mark: int) -> Reading[None]:
        if kind == _THINKING:
            yield from self._thinking.text(self._trays.reasoning)
        elif kind != _CALL:
            yield from self._bodies.text(self._trays.content)
        elif self._request.parse_calls:
            yield from self._bodies.call(mark, self._call())
        else:
            yield from self._bodies.give_back(mark)

    def _call(self) -> Reading[None]:
        """A body that is one call: its name and arguments are members of one JSON object."""
        yield from self._reader.space()
        yield from _WRAPPER.read(self._calls)
        yield from self._calls.close(_ENDS)


_ROLE_MARKER = Markers((_ROLE,))


def _open_kind(tail: str) -> str | None:
    """The kind of the block in which the prompt ended, if it ended in one."""
    block = tail[max([0, *(tail.rfind(marker) for marker in (_ROLE, *_ENDS))]) :]
    return max((kind for kind in _KINDS if kind in block), key=block.rfind, default=None)


INKLING = Format(
    name="inkling",
    tool_names=("inkling",),
    reasoning_names=("inkling",),
    messages=InklingBlocks(),
    ends=_ENDS,
)

FORMATS = (INKLING,)
