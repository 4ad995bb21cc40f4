"""SGLang without parsers, by its `ChatCompletionRequest` and `OpenAIServingChat._process_messages`."""

from __future__ import annotations

import json
from typing import Any

import xgrammar
from streamsieve_standins.model import compiled_schema, compiled_tag, write
from streamsieve_standins.standin import Body, Rejected, StandIn


def rejected(message: str) -> Rejected:
    return Rejected(400, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400})


class Sglang(StandIn):
    """No parser of its own."""

    def messages(self, body: Body) -> list[dict[str, Any]]:
        tools = body.get("tools")
        choice = body.get("tool_choice") or ("auto" if tools else "none")
        if choice == "required" and not tools:
            raise rejected("Tools cannot be empty if tool choice is set to required.")
        if isinstance(choice, dict):
            name = choice["function"]["name"]
            if name not in [tool["function"]["name"] for tool in tools or ()]:
                raise rejected(f"Tool '{name}' not found in tools list.")
        elif choice not in ("auto", "required", "none"):
            raise rejected("tool_choice: a tool, 'auto', 'required' or 'none' is expected")
        if choice == "none":
            tools = None  # they are not given to the template
        if body.get("stream") and body.get("return_token_ids"):
            raise rejected("return_token_ids is not supported with streaming.")
        grammar = _grammar(body)
        history = [{k: v for k, v in message.items() if k != "reasoning"} for message in body["messages"]]
        self.prompted.append({"tools": tools, "messages": history})
        text = self.text(
            write(self.wanted, grammar, self.habits),
            keeps_end=body.get("no_stop_trim", False),
            skips_special=body.get("skip_special_tokens", True) and not tools,
        )
        return [{"content": text, "reasoning_content": None} for _ in range(body.get("n") or 1)]


def _grammar(body: Body) -> xgrammar.CompiledGrammar | None:
    match body.get("response_format"):
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return compiled_schema({"type": "object"})
        case {"type": "json_schema", "json_schema": {"name": str(), "schema": schema}}:
            return compiled_schema(schema)
        case {"type": "structural_tag", "format": dict()} as tag if tag.keys() == {"type", "format"}:
            try:
                return compiled_tag(json.dumps(tag))
            except (RuntimeError, ValueError) as error:
                raise rejected(f"Failed to compile structural tag grammar: {error}") from error
        case other:
            raise rejected(f"response_format: {other} is none")
