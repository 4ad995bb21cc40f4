"""The response object of a reply that was made by chat completions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.responses.output import new_id

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

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_FAILED = frozenset({"error", "abort"})
"""Finish reasons by which vLLM and SGLang say that a reply is no answer."""


def ending(reason: str | None) -> Ending:
    """How a response ends whose chat completion has this finish reason; None where it has none."""
    if reason is None or reason in _FAILED:
        return "failed"
    return "incomplete" if reason in _INCOMPLETE else "completed"


@dataclass(slots=True)
class ReplyObject:
    """What a response says of itself beside its output.

    `request`: the client's body. `created_at`: seconds since 1970, from the upstream, as the model's name is.
    """

    request: JsonObject
    created_at: object
    model: object
    id: str = field(default_factory=lambda: new_id("resp"))
    usage: JsonObject | None = None

    def in_progress(self) -> JsonObject:
        return self._as_json("in_progress", [])

    def ended(self, reason: str | None, output: list[JsonObject], error: JsonObject | None = None) -> JsonObject:
        """The response at its end, by the finish reason of the completion, or broken off by an error."""
        status = "failed" if error else ending(reason)
        if status == "failed" and error is None:
            said = "without a finish reason" if reason is None else f"with the finish reason {reason!r}"
            error = {"code": "server_error", "message": f"The upstream ended the reply {said}."}
        more: JsonObject = {"error": error}
        if status == "incomplete":
            more["incomplete_details"] = {"reason": _INCOMPLETE[str(reason)]}
        return self._as_json(status, output) | more

    def _as_json(self, status: str, output: list[JsonObject]) -> JsonObject:
        echoed = {name: self.request[name] if self.request.get(name) is not None else said for name, said in _ECHOED.items()}
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


def usage_of(completion: JsonObject) -> JsonObject | None:
    """The usage of a chat completion or chunk in the names of the Responses API; None where it has none.

    The API has no way to say that the reasoning tokens are not known: they are 0 then.
    """
    usage = completion.get("usage")
    if not isinstance(usage, dict):
        return None
    given, made = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    return {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": _count(usage.get("prompt_tokens_details"), "cached_tokens"),
            "cache_write_tokens": _count(usage.get("prompt_tokens_details"), "cache_write_tokens"),
        },
        "output_tokens": made,
        "output_tokens_details": {
            "reasoning_tokens": _count(usage.get("completion_tokens_details"), "reasoning_tokens")
        },
        "total_tokens": _count(usage, "total_tokens") or given + made,
    }


def _count(fields: object, name: str) -> int:
    count = fields.get(name) if isinstance(fields, dict) else None
    return count if isinstance(count, int) else 0
