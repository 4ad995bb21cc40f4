"""The kinds of text that a response has, and how each is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsieve.wire.json_text import JsonObject


@dataclass(frozen=True, slots=True)
class TextKind:
    """One row of the grammar of text events.

    `item`, `prefix`: the type of the item and how its id begins. `holder`: the item's list of parts.
    `part`: the type of a part; `text`: the field of its text. `opened`, `closed`: the events of a part.
    `delta`, `done`: the events of its text. `beside`: what a part has beside its text.
    """

    item: str
    prefix: str
    holder: str
    part: str
    text: str
    opened: str
    closed: str
    delta: str
    done: str
    beside: JsonObject = field(default_factory=dict)

    @property
    def has_logprobs(self) -> bool:
        return self.part == "output_text"

    @property
    def index(self) -> str:
        """The field that counts the parts in `holder`."""
        return f"{self.holder}_index"

    def part_with(self, text: str, logprobs: list[JsonObject]) -> JsonObject:
        part = {"type": self.part, self.text: text, **self.beside}
        return part | {"logprobs": logprobs} if self.has_logprobs else part

    def item_with(self, id: str, parts: list[JsonObject], status: str) -> JsonObject:
        """The item; a reasoning item has both lists, of which one is empty."""
        if self.item == "message":
            return {"id": id, "type": "message", "status": status, "role": "assistant", "content": parts}
        lists: dict[str, list[JsonObject]] = {"summary": [], "content": [], self.holder: parts}
        return {"id": id, "type": "reasoning", "status": status, **lists}


CONTENT = TextKind(
    item="message",
    prefix="msg",
    holder="content",
    part="output_text",
    text="text",
    opened="response.content_part.added",
    closed="response.content_part.done",
    delta="response.output_text.delta",
    done="response.output_text.done",
    beside={"annotations": []},
)
REFUSAL = TextKind(
    item="message",
    prefix="msg",
    holder="content",
    part="refusal",
    text="refusal",
    opened="response.content_part.added",
    closed="response.content_part.done",
    delta="response.refusal.delta",
    done="response.refusal.done",
)
REASONING = TextKind(
    item="reasoning",
    prefix="rs",
    holder="content",
    part="reasoning_text",
    text="text",
    opened="response.content_part.added",
    closed="response.content_part.done",
    delta="response.reasoning_text.delta",
    done="response.reasoning_text.done",
)
"""As vLLM and LM Studio send a model's own thinking."""
SUMMARY = TextKind(
    item="reasoning",
    prefix="rs",
    holder="summary",
    part="summary_text",
    text="text",
    opened="response.reasoning_summary_part.added",
    closed="response.reasoning_summary_part.done",
    delta="response.reasoning_summary_text.delta",
    done="response.reasoning_summary_text.done",
)
"""As OpenAI sends it: clients that ask for a summary of the reasoning read it here."""


def reasoning_kind(body: JsonObject) -> TextKind | None:
    """Where the reasoning goes for a request; None where it wants none.

    A client that asks for a summary (`reasoning.summary`) reads the summary; the whole reasoning is sent there.
    """
    if body.get("include_reasoning") is False:
        return None
    match body.get("reasoning"):
        case {"summary": str()} | {"generate_summary": str()}:
            return SUMMARY
    return REASONING
