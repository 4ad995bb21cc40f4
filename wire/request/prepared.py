"""A request on its way to the upstream, and what has been decided of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from streamsieve.parsers.request import Request
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.observing.record import Heard, Outcome, Record
from streamsieve.wire.request.tool_choice import NO_CALLS, ToolChoice
from streamsieve.wire.settings import Settings

Headers = Sequence[tuple[bytes, bytes]]
"""Raw, in order, names in lower case."""

Api = Literal["chat", "responses", "completions"]


@dataclass(slots=True)
class Prepared:
    """One request and what has been decided of it; each step of `prepare` changes what it decides.

    `api`: what the client speaks. `upstream_api`: what the upstream is asked by. `path`: the path that it
    is asked at. `body`: the JSON object that it is sent. `request`: how the reply is read. `asked`: what
    the client wrote.
    """

    settings: Settings
    api: Api
    upstream_api: Api
    path: str
    headers: Headers
    body: JsonObject
    request: Request
    choice: ToolChoice = NO_CALLS
    """What the request says of calls, where they are read."""
    changed: bool = False
    """Whether the upstream is sent something else than the client wrote; `send` sees to it."""
    keep_ids: bool = True
    """Whether the client gets the upstream's token ids: not where only we asked for them."""
    keep_logprobs: bool = True
    """Whether the client gets log probabilities: not where only we asked for them."""
    record: Record | None = None
    """What is noted of the exchange, where somebody is told of it."""
    prompt: str | None = None
    """What the upstream goes on with, where it is not asked for a chat completion but for a completion."""
    asked: JsonObject = field(init=False)

    def __post_init__(self) -> None:
        self.asked = self.body

    def heard(self, index: int) -> Heard | None:
        """Where it is noted what the parser of a choice says; None where nobody is told."""
        return self.record.choice(index) if self.record else None

    def note_end(self, outcome: Outcome) -> None:
        """Note how the reply ended; the first that is noted counts."""
        if self.record is not None:
            self.record.end(outcome)

    def send(self, body: JsonObject) -> None:
        """Have the upstream sent this body."""
        self.body = body
        self.changed = True

    def ask(self, fields: Mapping[str, object]) -> None:
        """Have the upstream sent these fields too, and not `include_reasoning`: whoever leaves the reasoning out, it
        has to be told apart first."""
        said = {name: value for name, value in self.body.items() if name != "include_reasoning"} | dict(fields)
        if said != self.body:
            self.send(said)

    def read(self, body: JsonObject) -> None:
        """Have the reply read as that to this chat completion request."""
        self.request = request_of(body, self.settings)
        if self.record is not None:
            self.record.asked = body


def request_of(body: JsonObject, settings: Settings) -> Request:
    """How the reply to a chat completion request is read by these settings."""
    return Request.from_body(
        body,
        prompt_tail=settings.prompt_tail,
        unknown_tools=settings.unknown_tools,
        max_calls=settings.max_calls,
    )
