"""What a client hears of the local server: one answer, streamed or whole, and what is wrong with any of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Body = Mapping[str, object]

FINISHES = {"stop", "length", "tool_calls"}
_ERROR_KEYS = {"message", "type", "param", "code"}


@dataclass
class Choice:
    """One choice. `calls`: name and arguments, by index. `token_ids`: how many. `logprobs`: an entry for each token."""

    text: str = ""
    reasoning: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)
    finishes: list[str] = field(default_factory=list)
    token_ids: int = 0
    logprobs: list[Body] = field(default_factory=list)

    def take(self, part: Body, whole: bool) -> None:
        """A choice of a chunk, or that of a body which is not streamed."""
        said = part.get("message" if whole else "delta")
        message: Body = said if isinstance(said, dict) else {"content": part.get("text")}
        self.text += str(message.get("content") or "")
        self.reasoning += str(message.get("reasoning") or "")
        for place, call in enumerate(_objects(message.get("tool_calls"))):
            index, function = call.get("index", place), call["function"]
            assert isinstance(index, int)
            assert isinstance(function, dict)
            known = self.calls.setdefault(index, ["", ""])
            known[0] += function.get("name") or ""
            known[1] += function.get("arguments") or ""
        if isinstance(logprobs := part.get("logprobs"), dict):
            self.logprobs += _objects(logprobs.get("content"))
        if isinstance(ids := part.get("token_ids"), list):
            self.token_ids += len(ids)
        if finish := part.get("finish_reason"):
            self.finishes.append(str(finish))


@dataclass
class Heard:
    """An answer. `status`: 0 where the client left before there was one."""

    status: int = 0
    retry_after: str = ""
    body: Body = field(default_factory=dict)
    """That of an answer which is not streamed."""
    choices: dict[int, Choice] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    ids: set[object] = field(default_factory=set)
    error: Body | None = None
    events: int = 0
    done: int = 0
    is_streamed: bool = False
    is_whole: bool = False
    """Whether the end of the body came."""

    def take_event(self, data: str) -> None:
        """What stands in one `data:` line."""
        self.events += 1
        if data == "[DONE]":
            self.done = self.done or self.events
        else:
            self._take(json.loads(data), whole=False)

    def take_body(self, data: bytes) -> None:
        """A body that is not streamed; one that is no JSON has no error as OpenAI words it."""
        try:
            self.body = json.loads(data)
        except ValueError:
            self.body = {"not_json": data}
        self._take(self.body, whole=True)

    def _take(self, message: Body, whole: bool) -> None:
        error = message.get("error")
        if isinstance(error, dict):
            self.error = error
            return
        self.ids.add(message.get("id"))
        if isinstance(usage := message.get("usage"), dict):
            details = usage.get("completion_tokens_details") or {}
            self.usage = {**{key: value for key, value in usage.items() if isinstance(value, int)}, **details}
        for part in _objects(message.get("choices")):
            index = part["index"]
            assert isinstance(index, int)
            self.choices.setdefault(index, Choice()).take(part, whole)

    @property
    def replies(self) -> Sequence[Choice]:
        """The choices of a reply that has come to its end."""
        return list(self.choices.values()) if self.is_whole and self.status == 200 else ()


def faults(heard: Heard, choices: int, most: int) -> Iterator[str]:
    """What is wrong with the answer to a request for so many `choices`, of at most so many tokens together."""
    if heard.status == 0 or not heard.is_whole:
        return  # the client left
    if heard.status != 200 or heard.error is not None:
        yield from _wrong_error(heard)
        return
    if sorted(heard.choices) != list(range(choices)):
        yield f"{sorted(heard.choices)} of {choices} choices came"
    for index, choice in heard.choices.items():
        if len(choice.finishes) != 1 or choice.finishes[0] not in FINISHES:
            yield f"choice {index} finished by {choice.finishes}"
    if heard.is_streamed and (heard.done != heard.events or len(heard.ids) != 1):
        yield f"[DONE] was event {heard.done} of {heard.events}, under {len(heard.ids)} ids"
    if not 0 <= heard.usage.get("completion_tokens", -1) <= most:
        yield f"at most {most} tokens were asked for, and {heard.usage} came"


def _wrong_error(heard: Heard) -> Iterator[str]:
    if heard.error is None or not set(heard.error) >= _ERROR_KEYS or not heard.error["message"]:
        yield f"{heard.status} without an error as OpenAI words it: {heard.error}"
    elif heard.status >= 500 or heard.status == 200:
        yield f"{heard.status}: {heard.error}"
    if heard.status == 429 and not heard.retry_after.isdecimal():
        yield f"429 without Retry-After: {heard.retry_after!r}"


def _objects(value: object) -> list[Body]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
