"""What a client heard of a stream, byte for byte, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import orjson

from benchmarks.servers import SETTINGS, deltas
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector, Message

Kind = Literal["whole", "client leaves", "upstream dies"]
Trays = dict[str, str]


def _no_trays() -> Trays:
    return dict.fromkeys(("reasoning", "content", "name", "arguments"), "")


@dataclass
class Heard:
    """What a client made of the bytes it read; the last call's name and arguments are trays here."""

    trays: Trays = field(default_factory=_no_trays)
    finish_reasons: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    last: bytes = b""
    is_complete: bool = False
    """Whether the end of the body came."""

    @classmethod
    def of(cls, response: bytes) -> Heard:
        body, is_complete = _body(response)
        heard = cls(is_complete=is_complete)
        for event in body.split(b"\n\n")[:-1]:
            heard._take(event.removeprefix(b"data: "))
        return heard

    def _take(self, data: bytes) -> None:
        self.last = data
        if data == b"[DONE]":
            return
        event = orjson.loads(data)
        if "error" in event:
            self.errors.append(event["error"]["code"])
            return
        choice = event["choices"][0]
        delta = choice["delta"]
        for tray in ("reasoning", "content"):
            self.trays[tray] += delta.get(tray) or ""
        for call in delta.get("tool_calls") or ():
            for part, text in call["function"].items():
                self.trays[part] += text
        if choice["finish_reason"]:
            self.finish_reasons.append(choice["finish_reason"])

    @property
    def end(self) -> str:
        return f"{self.finish_reasons}, {self.errors}, {self.last[:80]!r}, complete: {self.is_complete}"


def faults(kind: Kind, message: Message, response: bytes) -> Iterator[str]:
    """What is wrong with the response to a request for `message`."""
    if not response.startswith(b"HTTP/1.1 200"[: len(response)]):
        # An upstream may die before its first byte is read.
        if kind != "upstream dies" or b'"upstream_unreachable"' not in response:
            yield f"it was refused: {response!r}"
        return
    heard, whole = Heard.of(response), _trays(message)
    match kind:
        case "whole":
            if heard.trays != whole:
                yield f"the trays are not what was written: {heard.trays} for {whole}"
            if not (heard.is_complete and heard.last == b"[DONE]" and heard.finish_reasons == ["tool_calls"]):
                yield f"it ended in {heard.end}"
        case "client leaves":
            if not all(whole[tray].startswith(text) for tray, text in heard.trays.items()):
                yield f"the trays are not the beginning of what was written: {heard.trays} for {whole}"
        case "upstream dies":
            if heard.trays not in _cut(message):
                yield f"the trays are not those of a part of what was written: {heard.trays} for {whole}"
            if heard.is_complete or heard.errors != ["reply_broke_off"] or b"error" not in heard.last:
                yield f"it broke off, and ended in {heard.end}"


def _body(response: bytes) -> tuple[bytes, bool]:
    """The body of a response in chunks, as far as it came, and whether its end came too."""
    rest = response.partition(b"\r\n\r\n")[2]
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return body, True
        body += rest[:length]
        rest = rest[length + 2 :]
    return body, False


def _trays(message: Message) -> Trays:
    trays = _no_trays() | {"reasoning": message.reasoning or "", "content": message.content or ""}
    for call in message.tool_calls:
        trays |= {"name": call.name, "arguments": call.arguments}
    return trays


def _cut(message: Message) -> Iterator[Trays]:
    """What each beginning of the text makes, where the reply broke off after it."""
    assert SETTINGS.format is not None
    written = deltas(message)
    for count in range(len(written) + 1):
        request = Request(parse_calls=True)
        machine, collector = SETTINGS.format.machine(request), Collector()
        for delta in written[:count]:
            collector.add(machine.feed(delta))
        collector.add(machine.finish(None))
        yield _trays(collector.message(None, request))
