"""Harmony, the channels of gpt-oss: every message says in its header which tray its body goes to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from streamsieve.parsers.arguments.json_text import copy_json
from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.format import Format
from streamsieve.parsers.messages import MessageSyntax
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reading, Write
from streamsieve.parsers.trays import Trays

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
_ENDS = ("<|end|>", "<|return|>", "<|call|>", "<|endoftext|>")
_ROLE = "assistant"

_OUTSIDE = Markers((START, CHANNEL, *_ENDS))
_HEADER_STARTS = Markers((" to=", CHANNEL, CONSTRAIN, MESSAGE))
_IN_HEADER = Markers((START, MESSAGE, *_ENDS))
_IN_BODY = Markers((START, CHANNEL, CONSTRAIN, MESSAGE, *_ENDS))
_BODY_ENDS = Markers((START, *_ENDS))
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(re.escape(CHANNEL) + r"\s*(\w+)")
_BUILT_IN = frozenset({"assistant", "browser", "python", "container"})


class _Tray(Enum):
    REASONING = auto()
    CONTENT = auto()
    CALL = auto()
    NOBODY = auto()


@dataclass(frozen=True, slots=True)
class _Header:
    """Where a message goes."""

    tray: _Tray
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> _Header:
        """Read the header before `<|message|>` (card: "Where a body goes")."""
        if recipient := _RECIPIENT.search(text):
            name = recipient[1]
            built_in = name.split(".", 1)[0] in _BUILT_IN
            return cls(_Tray.NOBODY) if built_in else cls(_Tray.CALL, name.removeprefix("functions."))
        channel = _CHANNEL.search(text)
        return cls(_Tray.REASONING if channel and channel[1] == "analysis" else _Tray.CONTENT)


@dataclass(frozen=True, kw_only=True)
class HarmonyMessages(MessageSyntax):
    """`[<|start|>assistant] header <|message|> body END`, message after message."""

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply."""
        reader = calls.reader
        calls.boundaries = _BODY_ENDS
        prefill = _prefill(request.prompt_tail)
        mark = reader.keep()
        if MESSAGE in prefill:
            trays.marked = True
            yield from _body(calls, trays, _Header.parse(prefill.split(MESSAGE)[0]), mark, request)
        elif prefill or (yield from reader.sees(_HEADER_STARTS)):
            yield from _header(calls, trays, prefill, mark, request)
        while True:
            reader.forget()
            space = yield from reader.space()
            mark = reader.keep()
            marker = yield from reader.takes(_OUTSIDE)
            if marker is None:
                trays.content(space)
                marker = yield from reader.find(_OUTSIDE, trays.content)
                mark = reader.keep(len(marker or ""))
            if marker is None:
                return
            if marker == CHANNEL:
                yield from _header(calls, trays, CHANNEL, mark, request)
            elif marker == START:
                yield from _message(calls, trays, mark, request)

    def write(self, message: Message, request: Request) -> str:
        """One message for each body, the preamble of calls on the commentary channel."""
        messages = []
        if message.reasoning:
            messages.append(f"{CHANNEL}analysis{MESSAGE}{message.reasoning}<|end|>")
        if message.content:
            channel, end = ("commentary", "<|end|>") if message.tool_calls else ("final", "<|return|>")
            messages.append(f"{CHANNEL}{channel}{MESSAGE}{message.content}{end}")
        for call in message.tool_calls:
            header = f"{CHANNEL}commentary to=functions.{call.name} {CONSTRAIN}json"
            messages.append(f"{header}{MESSAGE}{call.arguments}<|call|>")
        return f"{START}{_ROLE}".join(messages)


def _prefill(tail: str | None) -> str:
    """What the prompt has written of the reply's first message."""
    _, start, message = (tail or "").rpartition(START)
    return message.removeprefix(_ROLE) if start else ""


def _message(calls: CallWriter, trays: Trays, mark: int, request: Request) -> Reading[None]:
    """A message behind its `<|start|>`; one of another role is no message of the reply, so it is text."""
    try:
        yield from calls.reader.take(_ROLE)
    except (Malformed, EndOfText):
        trays.content(calls.reader.since(mark))
        return
    yield from _header(calls, trays, "", mark, request)


def _header(calls: CallWriter, trays: Trays, before: str, mark: int, request: Request) -> Reading[None]:
    """A header, `before` of it being taken, and its body. Without `<|message|>` it never opened: it is content."""
    reader = calls.reader
    pieces = [before]
    marker = yield from reader.find(_IN_HEADER, pieces.append)
    if marker == MESSAGE:
        yield from _body(calls, trays, _Header.parse("".join(pieces)), mark, request)
        return
    if marker == START:
        reader.position -= len(START)
    trays.repaired(mark, "broken_message")
    trays.content(reader.since(mark))


def _body(calls: CallWriter, trays: Trays, header: _Header, mark: int, request: Request) -> Reading[None]:
    match header.tray:
        case _Tray.CALL if request.parse_calls:
            yield from _call(calls, trays, header.name, mark)
        case _Tray.CALL:
            yield from _give_back(calls, trays, mark)
        case tray:
            trays.marked = True
            calls.reader.forget()
            sinks: dict[_Tray, Write] = {_Tray.REASONING: trays.reasoning, _Tray.CONTENT: trays.content}
            yield from _text(calls, sinks.get(tray, _nowhere))


def _text(calls: CallWriter, write: Write) -> Reading[None]:
    """A body of text through its end; a message that starts without one ends it too."""
    while marker := (yield from calls.reader.find(_IN_BODY, write)):
        if marker in (START, CHANNEL):
            calls.reader.position -= len(marker)
            return
        if marker in _ENDS:
            return


def _nowhere(text: str) -> None:
    """Takes what is for a built-in tool, not for the user (card: rule 2)."""


def _call(calls: CallWriter, trays: Trays, name: str, mark: int) -> Reading[None]:
    """A body that is the arguments of a call."""
    reader = calls.reader
    calls.open()
    calls.begin(reader.offset - mark)
    try:
        if (yield from reader.peek_after_space()) == "{":
            calls.start(name)
            yield from copy_json(reader, calls.arguments)
        elif (yield from reader.sees(Markers(_ENDS))):
            calls.whole(name, "{}")
        else:
            raise Malformed
        yield from calls.close(_ENDS)
    except (Malformed, EndOfText) as error:
        if calls.state is not CallState.REAL:
            yield from _give_back(calls, trays, mark)
        elif not calls.stays_cut(ended=isinstance(error, EndOfText)):
            yield from _give_back(calls, trays, mark) if calls.holding else _text(calls, _nowhere)


def _give_back(calls: CallWriter, trays: Trays, mark: int) -> Reading[None]:
    """The whole message, from its own start through its end, is content (contract, rule 7)."""
    reader = calls.reader
    if (yield from reader.find(_BODY_ENDS, _nowhere)) == START:
        reader.position -= len(START)
    trays.repaired(mark, "broken_message")
    trays.content(reader.since(mark))


HARMONY = Format(
    name="harmony",
    tool_names=("openai",),
    reasoning_names=("openai_gptoss",),
    messages=HarmonyMessages(),
    ends=_ENDS,
)

FORMATS = (HARMONY,)
