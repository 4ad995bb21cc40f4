"""The delta of a chat chunk, and the message of a whole reply: our events in it, and what others put there."""

from __future__ import annotations

from collections.abc import Sequence

from streamsieve.parsers.events import CallArguments, CallStart, Content, Event, Reasoning
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.settings import ReasoningField

OF_EVERY_CHUNK = frozenset({"id", "object", "created", "model", "system_fingerprint", "service_tier"})
"""What a chunk says of the completion that it is of; all of one say the same."""

REASONING_NAMES = ("reasoning", "reasoning_content")
"""The fields that servers and clients use; there is no OpenAI standard for either."""

TRAYS = frozenset({"content", "tool_calls", *REASONING_NAMES})


def reasoning_names(field: ReasoningField, include_reasoning: bool) -> tuple[str, ...]:
    """The fields that reasoning goes out in; none where the request wants no reasoning."""
    if not include_reasoning:
        return ()
    return REASONING_NAMES if field == "both" else (field,)


class Deltas:
    """The deltas that tell a client of one choice's events; reasoning goes into the fields `names`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.calls = 0
        """How many calls the client was told of."""

    def of(self, event: Event | None) -> JsonObject:
        """The delta for one event; empty where there is nothing to tell.

        The id, type and name of a call go out once, because clients append what is repeated.
        """
        match event:  # without captures, which would double the cost of what is done most often
            case Content():
                return {"content": event.text}
            case CallArguments():
                return {"tool_calls": [{"index": event.index, "function": {"arguments": event.json}}]}
            case Reasoning():
                return dict.fromkeys(self._names, event.text)
            case CallStart():
                self.calls += 1
                function = {"name": event.name, "arguments": ""}
                return {
                    "tool_calls": [{"index": event.index, "id": event.id, "type": "function", "function": function}]
                }
            case _:
                return {}


def index_of(choice: JsonObject) -> int:
    """Which choice it is; the first where an upstream does not say."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def is_text(fields: JsonObject) -> bool:
    """Whether the upstream left the text of this delta or message for us to sort.

    It did not where it filled the other trays, or where the content is a list of parts. Fields that are
    null or empty say nothing: vLLM sends them without any parser.
    """
    sorted_already = fields.get("tool_calls") or fields.get("reasoning") or fields.get("reasoning_content")
    return not sorted_already and isinstance(fields.get("content"), str | None)


def normalised(fields: JsonObject, names: Sequence[str]) -> JsonObject:
    """The same delta or message with its reasoning in the fields `names`, and in no others.

    A reasoning field that is null or empty is left out: clients take an empty one for the answer to
    where reasoning is. One that is not text is not ours to move.
    """
    given = [fields[name] for name in REASONING_NAMES if name in fields]
    if not given or not all(value is None or isinstance(value, str) for value in given):
        return fields
    text = next(filter(None, given), None)
    others = {name: value for name, value in fields.items() if name not in REASONING_NAMES}
    return {**others, **dict.fromkeys(names, text)} if text else others
