"""Events gathered into one message: the three trays and how the reply ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from streamsieve.parsers.events import CallArguments, CallStart, Content, Event, Reasoning, Repaired
from streamsieve.parsers.request import Request


@dataclass(slots=True)
class ToolCall:
    """One call of a reply; `arguments` is JSON text, cut short where the reply was."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Message:
    """A whole reply. An empty tray is None (calls: an empty list), as the contract has it."""

    reasoning: str | None = None
    content: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish_reason: str | None = None
    repairs: list[Repaired] = field(default_factory=list)


class Collector:
    """Gathers the events of one reply."""

    def __init__(self) -> None:
        self._reasoning: list[str] = []
        self._content: list[str] = []
        self._calls: list[tuple[CallStart, list[str]]] = []
        self._repairs: list[Repaired] = []

    def add(self, events: Iterable[Event]) -> None:
        """Take the next events, in order."""
        for event in events:
            match event:
                case Reasoning(text):
                    self._reasoning.append(text)
                case Content(text):
                    self._content.append(text)
                case CallStart():
                    self._calls.append((event, []))
                case CallArguments(index, json):
                    self._calls[index][1].append(json)
                case Repaired():
                    self._repairs.append(event)

    def message(self, engine_finish: str | None, request: Request) -> Message:
        """The reply so far; `engine_finish` is the finish reason that the engine gave."""
        return Message(
            reasoning="".join(self._reasoning) or None,
            content="".join(self._content) or None,
            tool_calls=[ToolCall(start.id, start.name, "".join(pieces)) for start, pieces in self._calls],
            finish_reason=finish_reason(engine_finish, len(self._calls), request),
            repairs=self._repairs,
        )


def finish_reason(engine_finish: str | None, calls: int, request: Request) -> str | None:
    """What the client is told (contract, rule 9): only a `stop` with calls becomes `tool_calls`."""
    if engine_finish == "stop" and calls and not request.named_tool_choice:
        return "tool_calls"
    return engine_finish
