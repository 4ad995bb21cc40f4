"""llama-server, by its README and `oaicompat_chat_params_parse`; its own parsers read `<think>` and `<tool_call>`."""

from __future__ import annotations

import json
import re
from typing import Any

import xgrammar
from streamsieve_standins.model import compiled_schema, write
from streamsieve_standins.standin import Body, Rejected, StandIn

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


def rejected(message: str) -> Rejected:
    return Rejected(400, {"error": {"code": 400, "message": message, "type": "invalid_request_error"}})


class LlamaCpp(StandIn):
    """Started with `--jinja` and `--special`."""

    def messages(self, body: Body) -> list[dict[str, Any]]:
        tools, choice = body.get("tools") or [], body.get("tool_choice", "auto")
        if choice not in ("none", "auto", "required"):
            raise rejected(f"Invalid tool_choice: {json.dumps(choice)}")
        parses = bool(tools) and choice != "none"
        if parses and "grammar" in body:
            raise rejected("Cannot use custom grammar constraints with tools.")
        if "grammar" in body and "json_schema" in body:
            raise rejected('Cannot use both "grammar" and "json_schema"')
        if parses and body.get("stream") and body.get("logprobs"):
            raise rejected("logprobs is not supported with tools + stream")
        if not isinstance((body.get("chat_template_kwargs") or {}).get("enable_thinking", True), bool):
            raise rejected('invalid type for "enable_thinking" (expected boolean, got string)')
        continues = body.get("continue_final_message")
        if continues and body.get("add_generation_prompt", True):
            raise rejected("Cannot set both add_generation_prompt and continue_final_message to true.")
        thinks = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
        history = [{k: v for k, v in message.items() if k != "reasoning"} for message in body["messages"]]
        self.prompted.append({"tools": tools, "messages": history, "thinks": thinks})
        wanted = self.wanted if thinks else self.wanted.partition("</think>")[2] or self.wanted
        text = write(wanted, _grammar(body), self.habits)
        message: dict[str, Any] = {"content": text}
        if body.get("reasoning_format", "auto") != "none" and "</think>" in text:
            reasoning, _, answer = text.partition("</think>")
            message = {"content": answer, "reasoning_content": reasoning.removeprefix("<think>")}
        if parses:
            calls = [json.loads(call) for call in _CALL.findall(text)]
            message["content"] = _CALL.sub("", str(message["content"]))
            message["tool_calls"] = [
                {
                    "id": "x",
                    "type": "function",
                    "function": {"name": call["name"], "arguments": json.dumps(call["arguments"], ensure_ascii=False)},
                }
                for call in calls
            ]
        return [message]


def _grammar(body: Body) -> xgrammar.CompiledGrammar | None:
    schema = body.get("json_schema")
    match body.get("response_format"):
        case {"type": "json_object", **rest}:
            schema = rest.get("schema", {"type": "object"})
        case {"type": "json_schema", "json_schema": {"schema": found}} | {"type": "json_schema", "schema": found}:
            schema = found
        case None | {"type": "text"}:
            pass
        case {"type": kind}:
            raise rejected(f'response_format type must be one of "text" or "json_object", but got: {kind}')
    return compiled_schema(schema) if schema is not None else None
