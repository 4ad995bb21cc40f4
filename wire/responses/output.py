"""The output of one response: what a parser says of the reply in, items and their events out."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from streamsieve.parsers.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from streamsieve.wire.attribution import Token, Told
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.responses.event_writer import DeltaTemplate, EventWriter
from streamsieve.wire.responses.text_kind import CONTENT, REFUSAL, TextKind, reasoning_kind

Status = Literal["in_progress", "completed", "incomplete"]


class Output:
    """The items of one response, in the order in which they were begun; each is a place in `_items`.

    Text of one kind that follows on itself is one item, so text after a call is a new message: the texts
    of all messages, joined, are the content tray. A call is an item of its own, and open until it ends.
    """

    def __init__(self, writer: EventWriter, prepared: Prepared) -> None:
        self._writer = writer
        self._reasoning = reasoning_kind(prepared.asked)  # None: it is left out
        self._keep_logprobs = prepared.keep_logprobs
        self._items: list[Item] = []
        self._text: TextItem | None = None  # the one that grows
        self._calls: dict[int, CallItem] = {}  # those that are open, by the parser's index

    def add(self, told: Iterable[Told]) -> bytes:
        """The stream's events for these."""
        return b"".join([self.one(one.event, self._logprobs(one.tokens)) for one in told])

    def plain(self, events: list[Event]) -> bytes:
        """The stream's events for these, of whose tokens nothing is known."""
        if len(events) == 1:  # nearly always, so it has a way without lists
            return self.one(events[0])
        return b"".join([self.one(event) for event in events])

    def one(self, event: Event | None, logprobs: list[JsonObject] | None = None) -> bytes:
        """The stream's events for one event; `logprobs` are of its text, if that is content."""
        match event:  # without captures, which would double the cost of what is done most often
            case Content():
                return self._write(CONTENT, event.text, logprobs)
            case CallArguments():
                call = self._calls.get(event.index)
                return call.grow(event.json) if call else b""
            case Reasoning():
                return self._write(self._reasoning, event.text) if self._reasoning else b""
            case CallStart():
                return self._start_call(event)
            case CallEnd():
                ended = self._calls.pop(event.index, None)
                return ended.close("completed") if ended else b""
            case _:
                return b""

    def refuse(self, text: str) -> bytes:
        """The stream's events for text of a refusal, which only an upstream that sorts its replies tells apart."""
        return self._write(REFUSAL, text) if text else b""

    def close(self, status: Status) -> bytes:
        """The reply, or a part of it, is over: its last text has this status; a call that is still open was cut."""
        broken = b"".join([call.close("incomplete") for call in self._calls.values()])
        text, self._text, self._calls = self._text, None, {}
        return broken + (text.close(status) if text else b"")

    def put(self, item: JsonObject) -> int:
        """An item that is somebody else's, or a newer version of the last such; returns its `output_index`."""
        self._items.append(ForeignItem(item))
        return len(self._items) - 1

    def replace(self, place: int, item: JsonObject) -> None:
        """The item that was `put` at this place has become this one."""
        self._items[place] = ForeignItem(item)

    @property
    def items(self) -> list[JsonObject]:
        """All items as they stand."""
        return [item.as_json() for item in self._items]

    def _logprobs(self, tokens: list[Token]) -> list[JsonObject] | None:
        """Those of `tokens`; where reasoning is left out, not of tokens that may hold some of it."""
        if not self._keep_logprobs:
            return None
        return [entry for token in tokens if self._reasoning or token.count == 1 for entry in token.logprobs]

    def _write(self, kind: TextKind, text: str, logprobs: list[JsonObject] | None = None) -> bytes:
        item = self._text
        if item is not None and item.kind is kind:
            return item.grow(text, logprobs)
        closing = self._close_text()
        self._text = item = TextItem(self._writer, kind, len(self._items))
        self._items.append(item)
        return closing + item.open() + item.grow(text, logprobs)

    def _close_text(self) -> bytes:
        item, self._text = self._text, None
        return item.close("completed") if item else b""

    def _start_call(self, start: CallStart) -> bytes:
        closing = self._close_text()
        if start.index in self._calls:  # of text that was read before, and broke off
            closing += self._calls.pop(start.index).close("incomplete")
        call = CallItem(self._writer, start, len(self._items))
        self._items.append(call)
        self._calls[start.index] = call
        return closing + call.open()


class Item(Protocol):
    """A place in the output."""

    def as_json(self) -> JsonObject: ...


@dataclass(slots=True)
class ForeignItem:
    """An item that the upstream made."""

    item: JsonObject

    def as_json(self) -> JsonObject:
        return self.item


class TextItem:
    """A message or a reasoning item, of one part."""

    def __init__(self, writer: EventWriter, kind: TextKind, place: int) -> None:
        self.kind = kind
        self.place = place
        self.id = new_id(kind.prefix)
        self._writer = writer
        self._pieces: list[str] = []
        self._logprobs: list[JsonObject] = []
        self._status: Status = "in_progress"
        self._where: JsonObject = {"item_id": self.id, "output_index": place, kind.index: 0}
        self._delta = DeltaTemplate(writer, kind.delta, self._where, logprobs=kind.has_logprobs)

    def open(self) -> bytes:
        item = self.kind.item_with(self.id, [], "in_progress")
        added = self._writer.write("response.output_item.added", {"output_index": self.place, "item": item})
        part = self.kind.part_with("", [])
        return added + self._writer.write(self.kind.opened, {**self._where, "part": part})

    def grow(self, text: str, logprobs: list[JsonObject] | None = None) -> bytes:
        self._pieces.append(text)
        if logprobs:
            self._logprobs += [_of_a_part(entry) for entry in logprobs]
        return self._delta.fill(text, logprobs and [_of_a_delta(entry) for entry in logprobs])

    def close(self, status: Status) -> bytes:
        self._status = status
        text = "".join(self._pieces)
        done = {**self._where, self.kind.text: text}
        if self.kind.has_logprobs:
            done["logprobs"] = [_of_a_delta(entry) for entry in self._logprobs]
        part = self.kind.part_with(text, self._logprobs)
        return (
            self._writer.write(self.kind.done, done)
            + self._writer.write(self.kind.closed, {**self._where, "part": part})
            + self._writer.write("response.output_item.done", {"output_index": self.place, "item": self.as_json()})
        )

    def as_json(self) -> JsonObject:
        part = self.kind.part_with("".join(self._pieces), self._logprobs)
        return self.kind.item_with(self.id, [part], self._status)


class CallItem:
    """A function call."""

    def __init__(self, writer: EventWriter, start: CallStart, place: int) -> None:
        self.place = place
        self.id = new_id("fc")
        self._writer = writer
        self._start = start
        self._pieces: list[str] = []
        self._status: Status = "in_progress"
        self._where: JsonObject = {"item_id": self.id, "output_index": place}
        self._delta = DeltaTemplate(writer, "response.function_call_arguments.delta", self._where)

    def open(self) -> bytes:
        return self._writer.write("response.output_item.added", {"output_index": self.place, "item": self.as_json()})

    def grow(self, json: str) -> bytes:
        self._pieces.append(json)
        return self._delta.fill(json)

    def close(self, status: Status) -> bytes:
        """The end of the item. Arguments that are not complete are never said to be done."""
        self._status = status
        done = b""
        if status == "completed":
            fields = {**self._where, "name": self._start.name, "arguments": "".join(self._pieces)}
            done = self._writer.write("response.function_call_arguments.done", fields)
        return done + self._writer.write(
            "response.output_item.done", {"output_index": self.place, "item": self.as_json()}
        )

    def as_json(self) -> JsonObject:
        return {
            "id": self.id,
            "type": "function_call",
            "status": self._status,
            "name": self._start.name,
            "call_id": self._start.id,
            "arguments": "".join(self._pieces),
        }


def new_id(prefix: str) -> str:
    """An id as OpenAI's are: the kind of the thing, and random hex."""
    return f"{prefix}_{uuid.uuid4().hex}"


def _of_a_part(entry: JsonObject) -> JsonObject:
    """An entry of log probabilities as parts have it: with bytes, which events of an upstream lack."""
    tops = entry.get("top_logprobs")
    return {
        **_with_bytes(entry),
        "top_logprobs": [_with_bytes(top) for top in (tops if isinstance(tops, list) else []) if isinstance(top, dict)],
    }


def _with_bytes(entry: JsonObject) -> JsonObject:
    if entry.get("bytes") is not None:
        return entry
    return {**entry, "bytes": list(str(entry.get("token") or "").encode("utf-8", "surrogatepass"))}


def _of_a_delta(entry: JsonObject) -> JsonObject:
    """An entry of log probabilities as events have it: without bytes."""
    tops = entry.get("top_logprobs")
    return {
        "token": entry.get("token"),
        "logprob": entry.get("logprob"),
        "top_logprobs": [
            {"token": top.get("token"), "logprob": top.get("logprob")}
            for top in (tops if isinstance(tops, list) else [])
            if isinstance(top, dict)
        ],
    }
