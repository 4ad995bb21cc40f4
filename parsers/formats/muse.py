"""Muse Spark and Muse Glimmer: messages to recipients, calls in ATEM tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers.arguments.schema_types import JSON, Typing, convert_or_json, parameter_types
from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.calls.labels import QUOTED
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.message_tags import MessageTags
from streamsieve.parsers.messages import MessageSyntax, Tray, nowhere
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reading, Write
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject, sequence, text
from streamsieve.parsers.trays import Trays

_START, _MESSAGE, _EOM, _EOT = "<|start|>", "<|message|>", "<|eom|>", "<|eot|>"
_ROLE, _TO = "assistant", " to="
_ENDS = (_EOM, _EOT)
_HEADERS = (_START, _TO, _MESSAGE)
_GROUP, _GROUP_END = "<atem:function_calls>", "</atem:function_calls>"
_INVOKE, _INVOKE_END = "<atem:invoke name=", "</atem:invoke>"

_IN_TEXT = Markers((*_HEADERS, *_ENDS))
_IN_BARE_TEXT = Markers((*_HEADERS, *_ENDS, _GROUP, _INVOKE))
_IN_CALLS = Markers((*_HEADERS, *_ENDS, _GROUP, _GROUP_END, _INVOKE))
_CALL_ENDS = Markers((_INVOKE_END, *_HEADERS, *_ENDS, _GROUP, _GROUP_END, _INVOKE))
_ADDRESS, _BODY = Markers((_TO,)), Markers((_MESSAGE,))
_RECIPIENT = re.compile(r"[^\s<]*")


def _types(parameters: JsonSchema | None, key: str) -> frozenset[str]:
    """What is not declared is whatever JSON it is."""
    return parameter_types(parameters, key) or JSON


class AtemCalls(TaggedCalls):
    """`<atem:invoke name="NAME">` with its parameters."""

    def read_arguments(self, calls: CallWriter, name: str) -> Reading[None]:
        """Read what stands behind the name. One that the model doubled is taken once (card: "Calls")."""
        once = name[: len(name) // 2]
        tools = calls.request.tools
        doubled = name == f"{once}.{once}" and once in tools and name not in tools
        yield from super().read_arguments(calls, once if doubled else name)


_ATEM = AtemCalls(
    groups=((_GROUP, _GROUP_END),),
    openers=(_INVOKE,),
    closers=(_INVOKE_END,),
    label=QUOTED,
    name_close=">",
    parameter=Parameter(open="<atem:parameter name=", label=QUOTED, key_close=">", value_close="</atem:parameter>"),
    ends_unclosed_call=(_INVOKE, _GROUP, _GROUP_END, _START, _MESSAGE),
    real_at="head",
    typing=Typing(types=_types, convert=convert_or_json),
)


@dataclass(frozen=True, kw_only=True)
class MuseMessages(MessageSyntax):
    """`[<|start|>assistant] [ to=RECIPIENT] <|message|> body END`, message after message.

    `trays`: where a recipient's messages go, no recipient being the empty one; all others are functions.
    """

    thinking_end: ClassVar[str] = _EOM
    markers: ClassVar[Mapping[str, str]] = {
        _START: "a message begins, its role behind it",
        _TO: "the recipient in a header: `self` is reasoning, `user` content, a function's name a call",
        _MESSAGE: "the header ends, the body begins",
        _EOM: "the message ends",
        _GROUP: "calls begin",
        _GROUP_END: "calls end",
        _INVOKE: "a call begins",
        _INVOKE_END: "a call ends",
        _ATEM.parameter.write("KEY", "VALUE", "VALUE", ""): "a parameter",
    }
    trays: tuple[tuple[str, Tray], ...]

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply."""
        return _Reply(dict(self.trays), calls, trays, request).read()

    def write(self, message: Message, request: Request) -> str:
        """One message for each body; calls are addressed by their own names."""
        messages = [f"{_TO}self{_MESSAGE}{message.reasoning}"] if message.reasoning else []
        if message.content:
            messages.append(f"{_TO}user{_MESSAGE}{message.content}")
        for call in message.tool_calls:
            messages.append(f"{_TO}{call.name}{_MESSAGE}{_ATEM.write([call], request)}")
        return f"{_EOM}{_START}{_ROLE}".join(messages) + _EOT if messages else ""

    def tag(self, demand: Demand, request: Request) -> JsonObject:
        """Calls and the answer as they must be, thinking free."""
        return MessageTags(
            start=f"{_START}{_ROLE}",
            thought=f"{_TO}self{_MESSAGE}",
            aside=f"{_TO}user{_MESSAGE}",
            answer=f"{_TO}user{_MESSAGE}",
            body=text([*_HEADERS, *_ENDS, _GROUP, _INVOKE]),
            call=_call_tag,
            end=_EOM,
            call_end=_EOM,
            lasts=_ENDS,
            call_lasts=_ENDS,
        ).reply(demand)


def _call_tag(name: str, schema: JsonSchema) -> JsonObject:
    block = _ATEM.block({name: schema}, Request())
    return sequence(f"{_TO}{name}{_MESSAGE}", block.calls(parallel=False))


class _Reply:
    """One reply, read message by message."""

    def __init__(self, tray_of: dict[str, Tray], calls: CallWriter, trays: Trays, request: Request) -> None:
        self._tray_of = tray_of
        self._calls = calls
        self._trays = trays
        self._request = request
        self._reader = calls.reader
        self._mark = 0  # where the present message begins
        self._bare = True  # no header has come
        self._behind_tag = True
        calls.boundaries = _CALL_ENDS

    def read(self) -> Reading[None]:
        """Read the whole reply."""
        recipient = yield from self._prefilled(self._request.prompt_tail or "")
        while recipient is not None or (recipient := (yield from self._between())) is not None:
            recipient = yield from self._body(recipient)

    def _prefilled(self, tail: str) -> Reading[str | None]:
        """The recipient of the message whose header the prompt began or ended in, or None."""
        _, start, header = tail.rpartition(_START)
        address, body, _ = header.removeprefix(_ROLE).partition(_MESSAGE)
        if not start or not (body or address.startswith(_TO)):
            return None
        recipient = address.removeprefix(_TO)
        if not body:
            mark = self._reader.keep()
            recipient += yield from self._reader.run(_RECIPIENT)
            if not (yield from self._reader.takes(_BODY)):
                self._reader.rewind(mark)
                return None
        self._mark = self._reader.keep()
        self._bare = False
        return recipient

    def _header(self, marker: str) -> Reading[str | None]:
        """The recipient in the header that `marker` begins; None where none follows, only `marker` being taken."""
        reader = self._reader
        mark = reader.keep(len(marker))
        recipient = ""
        try:
            if marker == _START:
                yield from reader.take(_ROLE)
            if marker == _TO or (marker == _START and (yield from reader.takes(_ADDRESS))):
                recipient = yield from reader.run(_RECIPIENT)
                if not recipient:
                    raise Malformed
            if marker != _MESSAGE:
                yield from reader.take(_MESSAGE)
        except (Malformed, EndOfText):
            reader.rewind(mark + len(marker))
            return None
        self._mark = mark
        self._bare = False
        return recipient

    def _between(self) -> Reading[str | None]:
        """Text outside messages, up to the next header; where there are none at all it may hold calls."""
        reader, write = self._reader, self._trays.content
        while True:
            reader.forget()
            markers = _IN_BARE_TEXT if self._bare and self._request.parse_calls else _IN_TEXT
            marker = yield from reader.find(markers, write)
            if marker is None:
                return None
            if marker == _GROUP:
                if (recipient := (yield from self._block(reader.keep(len(marker)), _GROUP_END))) is not None:
                    return recipient
            elif marker == _INVOKE:
                self._calls.open()
                yield from self._call(write)
            elif marker not in _ENDS:
                if (recipient := (yield from self._header(marker))) is not None:
                    return recipient
                write(marker)

    def _body(self, recipient: str) -> Reading[str | None]:
        """A message to `recipient`, its header taken; returns the recipient of the next where that follows at once."""
        match self._tray_of.get(recipient, Tray.CALL):
            case Tray.CALL if self._request.parse_calls:
                return (yield from self._block(self._mark, *_ENDS))
            case Tray.CALL:
                self._trays.content(self._reader.since(self._mark))
                return (yield from self._text(self._trays.content, self._trays.content))
            case Tray.REASONING:
                self._trays.marked = True
                return (yield from self._text(self._trays.reasoning, nowhere))
            case Tray.CONTENT:
                self._trays.marked = True
                return (yield from self._text(self._trays.content, nowhere))
            case Tray.NOBODY:
                self._trays.marked = True
                return (yield from self._text(nowhere, nowhere))

    def _text(self, write: Write, write_end: Write) -> Reading[str | None]:
        """A body of text, through its end or the next header."""
        reader = self._reader
        while True:
            reader.forget()
            marker = yield from reader.find(_IN_TEXT, write)
            if marker is None or marker in _ENDS:
                if marker:
                    write_end(marker)
                return None
            if (recipient := (yield from self._header(marker))) is not None:
                return recipient
            write(marker)

    # -- calls --

    def _block(self, mark: int, *closers: str) -> Reading[str | None]:
        """Calls from `mark` on, through one of `closers` or the next header. Without a call all of it is text."""
        reader, calls = self._reader, self._calls
        calls.open()
        recipient, end = None, None
        self._behind_tag = True
        while marker := (yield from reader.find(_IN_CALLS, self._aside)):
            if marker in closers:
                break
            if marker == _INVOKE:
                yield from self._call(calls.text)
            elif marker in _HEADERS:
                end = reader.offset - len(marker)
                if (recipient := (yield from self._header(marker))) is not None:
                    break
                calls.text(marker)
                if calls.survived:
                    reader.forget()
            elif marker in _ENDS:
                reader.position -= len(marker)
                break
            self._behind_tag = marker not in _HEADERS
        if not calls.survived:
            self._trays.repaired(mark, "broken_message")
            text = reader.since(mark)
            self._trays.content(text if recipient is None or end is None else text[: end - mark])
        self._trays.marked = True
        return recipient

    def _aside(self, text: str) -> None:
        """Text between calls; white space behind a tag is framing."""
        text = text.lstrip() if self._behind_tag else text
        if text:
            self._behind_tag = False
            self._calls.text(text)

    def _call(self, write: Write) -> Reading[None]:
        """One call, its opener taken. What is none, or has to be given back, goes to `write`."""
        reader, calls = self._reader, self._calls
        calls.begin(len(_INVOKE))
        try:
            yield from _ATEM.read(calls, _INVOKE)
        except (Malformed, EndOfText) as error:
            if calls.state is not CallState.REAL:
                self._trays.repaired(calls.mark, "not_a_call")
                reader.rewind(calls.mark + len(_INVOKE))
                calls.leave()
                write(_INVOKE)
            elif not calls.stays_cut(ended=isinstance(error, EndOfText)):
                end = yield from reader.find(_CALL_ENDS, nowhere)
                reader.position -= len(end) if end and end != _INVOKE_END else 0
                if calls.holding:
                    write(reader.since(calls.mark))
        if calls.survived:
            reader.forget()


def _muse(name: str, *aliases: str, trays: dict[str, Tray]) -> Format:
    return Format(
        name=name,
        tool_names=(name, *aliases),
        reasoning_names=(name, *aliases),
        messages=MuseMessages(trays=tuple(trays.items())),
        ends=_ENDS,
    )


MUSE = _muse(
    "muse",
    "musespark1x",
    trays={
        "self": Tray.REASONING,
        "": Tray.REASONING,
        "user": Tray.CONTENT,
        "commentary": Tray.CONTENT,
        "developer": Tray.NOBODY,
    },
)
MUSE_GLIMMER = _muse("muse_glimmer", trays={"self": Tray.REASONING, "": Tray.CONTENT, "user": Tray.CONTENT})

FORMATS = (MUSE, MUSE_GLIMMER)
