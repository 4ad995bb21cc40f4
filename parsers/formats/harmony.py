"""Harmony, the channels of gpt-oss: every message says in its header which tray its body goes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers.arguments.json_text import copy_json
from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.format import Format
from streamsieve.parsers.message_tags import MessageTags
from streamsieve.parsers.messages import Bodies, MessageSyntax, Tray, nowhere
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Reading, Write
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject, arguments, either, optional, sequence, text
from streamsieve.parsers.trays import Trays

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
_ENDS = ("<|end|>", "<|return|>", "<|call|>", "<|endoftext|>")
_ROLE = "assistant"

_OUTSIDE = Markers((START, CHANNEL, *_ENDS))
_HEADER_STARTS = Markers((" to=", CHANNEL, CONSTRAIN, MESSAGE))
_IN_HEADER = Markers((START, MESSAGE, *_ENDS))
_IN_BODY = Markers((START, CHANNEL, CONSTRAIN, MESSAGE, *_ENDS))
_MESSAGE_ENDS = Markers(_ENDS)
_RECIPIENT = re.compile(r"\bto=((?:(?!<\|)\S)+)")
_CHANNEL = re.compile(re.escape(CHANNEL) + r"\s*(\w+)")
_BUILT_IN = frozenset({"assistant", "browser", "python", "container"})


@dataclass(frozen=True, slots=True)
class _Header:
    """Where a message goes."""

    tray: Tray
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> _Header:
        """Read the header before `<|message|>` (card: "Where a body goes")."""
        if recipient := _RECIPIENT.search(text):
            name = recipient[1]
            built_in = name.split(".", 1)[0] in _BUILT_IN
            return cls(Tray.NOBODY) if built_in else cls(Tray.CALL, name.removeprefix("functions."))
        channel = _CHANNEL.search(text)
        return cls(Tray.REASONING if channel and channel[1] == "analysis" else Tray.CONTENT)


@dataclass(frozen=True, kw_only=True)
class HarmonyMessages(MessageSyntax):
    """`[<|start|>assistant] header <|message|> body END`, message after message."""

    thinking_end: ClassVar[str] = "<|end|>"
    markers: ClassVar[Mapping[str, str]] = {
        START: "a message begins, its role behind it",
        CHANNEL: "the channel in a header: `analysis` is reasoning, others are content",
        " to=": "the recipient in a header: a call, `functions.` before its name; browser, python: nobody",
        CONSTRAIN: "the type of the body, in a header; it changes nothing",
        MESSAGE: "the header ends, the body begins",
        "<|call|>": "the message ends, one that holds a call",
    }

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply."""
        return _Reply(calls, trays, request).read()

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

    def tag(self, demand: Demand, request: Request) -> JsonObject:
        """Final messages and calls as they must be, the other channels free."""
        constrained = optional("" if demand.response is None else f" {CONSTRAIN}json")
        return MessageTags(
            start=f"{START}{_ROLE}",
            thought=f"{CHANNEL}analysis{MESSAGE}",
            aside=f"{CHANNEL}commentary{MESSAGE}",
            answer=sequence(f"{CHANNEL}final", constrained, MESSAGE),
            body=text([START, CHANNEL, MESSAGE, CONSTRAIN, *_ENDS]),
            call=_call_tag,
            end="<|end|>",
            call_end="<|call|>",
            lasts=("<|return|>", "<|end|>"),
            call_lasts=("<|call|>", "<|end|>"),
        ).reply(demand)


def _call_tag(name: str, schema: JsonSchema) -> JsonObject:
    """A call's message; its recipient stands behind the role or behind the channel."""
    to = f" to=functions.{name}"
    header = either(
        f"{CHANNEL}commentary{to} {CONSTRAIN}json",
        f"{CHANNEL}commentary{to}{CONSTRAIN}json",
        f"{to}{CHANNEL}commentary {CONSTRAIN}json",
        f"{to}{CHANNEL}commentary json",
    )
    return sequence(header, MESSAGE, arguments(schema))


def _prefill(tail: str | None) -> str:
    """What the prompt has written of the reply's first message."""
    _, start, message = (tail or "").rpartition(START)
    return message.removeprefix(_ROLE) if start else ""


class _Reply:
    """One reply, read message by message."""

    def __init__(self, calls: CallWriter, trays: Trays, request: Request) -> None:
        self._calls = calls
        self._trays = trays
        self._request = request
        self._reader = calls.reader
        self._bodies = Bodies(calls, trays, closers=_ENDS, openers=(START,))

    def read(self) -> Reading[None]:
        """Read the whole reply."""
        reader, trays = self._reader, self._trays
        prefill = _prefill(self._request.prompt_tail)
        mark = reader.keep()
        if MESSAGE in prefill:
            yield from self._body(_Header.parse(prefill.split(MESSAGE)[0]), mark)
        elif prefill or (yield from reader.sees(_HEADER_STARTS)):
            yield from self._header(prefill, mark)
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
                yield from self._header(CHANNEL, mark)
            elif marker == START:
                yield from self._message(mark)

    def _message(self, mark: int) -> Reading[None]:
        """A message behind its `<|start|>`; one of another role is no message of the reply, so it is text."""
        try:
            yield from self._reader.take(_ROLE)
        except (Malformed, EndOfText):
            self._trays.content(self._reader.since(mark))
            return
        yield from self._header("", mark)

    def _header(self, before: str, mark: int) -> Reading[None]:
        """A header, `before` of it being taken, and its body. Without `<|message|>` it never opened: it is content."""
        pieces = [before]
        marker = yield from self._reader.find(_IN_HEADER, pieces.append)
        if marker == MESSAGE:
            yield from self._body(_Header.parse("".join(pieces)), mark)
            return
        if marker == START:
            self._reader.position -= len(START)
        self._bodies.was_text(mark)

    def _body(self, header: _Header, mark: int) -> Reading[None]:
        match header.tray:
            case Tray.CALL if self._request.parse_calls:
                yield from self._bodies.call(mark, self._call(header.name))
            case Tray.CALL:
                yield from self._bodies.give_back(mark)
            case tray:
                sinks: dict[Tray, Write] = {
                    Tray.REASONING: self._trays.reasoning,
                    Tray.CONTENT: self._trays.content,
                }
                yield from self._text(sinks.get(tray, nowhere))

    def _text(self, write: Write) -> Reading[None]:
        """A body of text through its end; a message that starts without one ends it too."""
        self._trays.marked = True
        self._reader.forget()
        while marker := (yield from self._reader.find(_IN_BODY, write)):
            if marker in (START, CHANNEL):
                self._reader.position -= len(marker)
                return
            if marker in _ENDS:
                return

    def _call(self, name: str) -> Reading[None]:
        """A body that is the arguments of a call."""
        reader, calls = self._reader, self._calls
        if (yield from reader.peek_after_space()) == "{":
            calls.start(name)
            yield from copy_json(reader, calls.arguments)
        elif (yield from reader.sees(_MESSAGE_ENDS)):
            calls.whole(name, "{}")
        else:
            raise Malformed
        yield from calls.close(_ENDS)


HARMONY = Format(
    name="harmony",
    tool_names=("openai", "gpt-oss"),
    reasoning_names=("openai_gptoss", "gpt-oss"),
    messages=HarmonyMessages(),
    ends=_ENDS,
)

FORMATS = (HARMONY,)
