"""A server of raw text that knows OpenAI's fields and no others, and enforces `response_format` behind the thinking."""

from __future__ import annotations

from typing import Any

from streamsieve_standins.model import compiled_schema, write
from streamsieve_standins.standin import Body, Rejected, StandIn

_KNOWN = {
    *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort"),
    *("stream", "stream_options", "n", "stop", "temperature", "logprobs", "top_logprobs", "max_tokens", "seed"),
}


def rejected(message: str, param: str | None = None) -> Rejected:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    return Rejected(400, {"error": error})


class OpenAi(StandIn):
    """By the API reference of `POST /chat/completions`."""

    def messages(self, body: Body) -> list[dict[str, Any]]:
        if unknown := body.keys() - _KNOWN:
            raise rejected(f"Unrecognized request argument supplied: {min(unknown)}")
        choice = body.get("tool_choice")
        if choice is not None and not body.get("tools"):
            raise rejected("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
        if choice is not None and choice not in ("none", "auto", "required") and not isinstance(choice, dict):
            raise rejected(f"Invalid value: {choice!r}.", "tool_choice")
        match body.get("response_format"):
            case {"type": "json_schema", "json_schema": {"name": str(), "schema": schema}}:
                grammar = compiled_schema(schema)
            case {"type": "json_object"}:
                grammar = compiled_schema({"type": "object"})
            case None | {"type": "text"}:
                grammar = None
            case _:
                raise rejected("Invalid value: 'response_format'.", "response_format")
        self.prompted.append({"tools": body.get("tools"), "messages": body["messages"]})
        thinking, closer, answer = self.wanted.rpartition("</think>")
        return [{"content": thinking + closer + write(answer, grammar, self.habits)} for _ in range(body.get("n") or 1)]
