"""Ollama, by `openai/openai.go`: fields that it does not know are passed over, and it sorts all by itself."""

from __future__ import annotations

import json
import re
from typing import Any

from streamsieve_standins.model import compiled_schema, write
from streamsieve_standins.standin import Body, Rejected, StandIn

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


def rejected(message: str) -> Rejected:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Rejected(400, {"error": error})


class Ollama(StandIn):
    """A model that thinks unless it is told not to."""

    def messages(self, body: Body) -> list[dict[str, Any]]:
        for message in body["messages"]:
            for call in message.get("tool_calls") or ():
                try:
                    json.loads(call["function"]["arguments"])
                except ValueError as error:
                    raise rejected("invalid tool call arguments") from error
        thinks = body.get("reasoning_effort") != "none"
        history = [{k: v for k, v in message.items() if k != "reasoning_content"} for message in body["messages"]]
        self.prompted.append({"tools": body.get("tools"), "messages": history, "thinks": thinks})
        match body.get("response_format"):
            case {"type": "json_schema", "json_schema": {"schema": schema}}:
                grammar = compiled_schema(schema)
            case {"type": "json_object"}:
                grammar = compiled_schema({"type": "object"})
            case _:
                grammar = None
        reasoning, closer, answer = self.wanted.partition("</think>")
        text = write(answer if closer else reasoning, grammar, self.habits)
        calls = [json.loads(call) for call in _CALL.findall(text)] if body.get("tools") else []
        message = {"content": _CALL.sub("", text) if calls else text}
        if closer and thinks:
            message["reasoning"] = reasoning.removeprefix("<think>")
        message["tool_calls"] = [
            {
                "id": f"call_{place}",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"], ensure_ascii=False)},
            }
            for place, call in enumerate(calls)
        ]
        return [message]
