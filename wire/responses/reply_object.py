"""The response object of a reply that was made by chat completions."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

from streamsieve.wire.attribution import Attribution
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.responses.output import new_id
from streamsieve.wire.usage import with_reasoning_tokens

Ending = Literal["completed", "incomplete", "failed"]

_ECHOED: JsonObject = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "auto",
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "user": None,
}
"""What a response repeats of its request, and what it says where the request said nothing."""

_FIXED: JsonObject = {
    "background": False,
    "previous_response_id": None,
    "store": False,
    "truncation": "disabled",
}
"""What is the same for every response: nothing is stored, and no input is left out."""

SERVER_ERROR = "server_error"
_ERROR_CODES = frozenset({SERVER_ERROR, "rate_limit_exceeded", "invalid_prompt"})
"""Those that have to do with text."""

BROKEN_OFF: JsonObject = {"code": SERVER_ERROR, "message": "The reply broke off: what makes it has failed."}
"""The error where the body of the reply broke."""

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""The finish reasons of a reply that is not all there, and what a response calls them."""
_FAILED = frozenset({"error", "abort"})
"""Finish reasons by which vLLM and SGLang say that a reply is no answer."""


def ending(reason: str | None) -> Ending:
    """How a response ends whose chat completion has this finish reason; None where it has none."""
    if reason is None or reason in _FAILED:
        return "failed"
    return "incomplete" if reason in INCOMPLETE else "completed"


@dataclass(slots=True)
class ReplyObject:
    """What a response says of itself beside its output.

    `request`: the client's body. `created_at`: seconds since 1970.
    """

    request: JsonObject
    created_at: int = field(default_factory=lambda: int(time.time()))
    model: str = ""
    id: str = field(default_factory=lambda: new_id("resp"))
    usage: JsonObject | None = None

    def __post_init__(self) -> None:
        self._name(self.request)

    def made_by(self, completion: JsonObject) -> None:
        """Take the time and the model's name from a completion, or a chunk of one, as far as it tells them."""
        created = completion.get("created")
        if isinstance(created, int) and created:
            self.created_at = created
        self._name(completion)

    def _name(self, holder: JsonObject) -> None:
        model = holder.get("model")
        if isinstance(model, str) and model:
            self.model = model

    def in_progress(self) -> JsonObject:
        return self._as_json("in_progress", [])

    def ended(self, reason: str | None, output: list[JsonObject], error: JsonObject | None = None) -> JsonObject:
        """The response at its end, by the finish reason of the completion, or broken off by an error."""
        status = "failed" if error else ending(reason)
        if status == "failed" and error is None:
            said = "without a finish reason" if reason is None else f"with the finish reason {reason!r}"
            error = {"code": SERVER_ERROR, "message": f"The upstream ended the reply {said}."}
        more: JsonObject = {"error": _of_a_response(error) if error else None}
        if status == "incomplete":
            more["incomplete_details"] = {"reason": INCOMPLETE[str(reason)]}
        return self._as_json(status, output) | more

    def _as_json(self, status: str, output: list[JsonObject]) -> JsonObject:
        given = self.request
        echoed = {name: said if given.get(name) is None else given[name] for name, said in _ECHOED.items()}
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": output,
            **echoed,
            **_FIXED,
            "usage": self.usage,
        }


def usage_of(completion: JsonObject, attribution: Attribution | None) -> JsonObject | None:
    """The usage of a chat completion or chunk in the names of the Responses API; None where it has none.

    `attribution`: what knows how much of it went into thinking, where the upstream did not count that. The
    API has no way to say that it is not known: it is 0 then.
    """
    counts = [attribution.reasoning_tokens] if attribution else []
    usage = with_reasoning_tokens(completion, counts).get("usage")
    if not isinstance(usage, dict):
        return None
    given, made = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    input_tokens, output_tokens = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {name: _count(given, name) for name in ("cached_tokens", "cache_write_tokens")},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": _count(made, "reasoning_tokens")},
        "total_tokens": _count(usage, "total_tokens") or input_tokens + output_tokens,
    }


def error_of(event: JsonObject) -> JsonObject:
    """The error of a chat completion's error event, as an `error` event and a failed response have it."""
    given = event.get("error", event)
    fields = given if isinstance(given, dict) else {"message": given}
    code, message = fields.get("code"), fields.get("message")
    return {
        "code": code if isinstance(code, str) and code else SERVER_ERROR,
        "message": message if isinstance(message, str) and message else "The upstream reports an error.",
        "param": fields.get("param"),
    }


def _of_a_response(error: JsonObject) -> JsonObject:
    """An error as a response may have it, whose codes are a closed set."""
    code = error["code"] if error["code"] in _ERROR_CODES else SERVER_ERROR
    return {"code": code, "message": error["message"]}


def _count(fields: object, name: str) -> int:
    count = fields.get(name) if isinstance(fields, dict) else None
    return count if isinstance(count, int) else 0
