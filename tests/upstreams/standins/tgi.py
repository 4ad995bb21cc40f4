"""Text Generation Inference, by `prepare_chat_input` and `ToolGrammar`: with tools it constrains, and sorts, itself."""

from __future__ import annotations

import json
from typing import Any

from streamsieve_standins.model import compiled_schema, write
from streamsieve_standins.standin import Body, Rejected, StandIn


def rejected(message: str, kind: str) -> Rejected:
    return Rejected(422, {"error": message, "error_type": kind})


class Tgi(StandIn):
    """Version 3."""

    def messages(self, body: Body) -> list[dict[str, Any]]:
        tools, schema = body.get("tools"), _schema(body.get("response_format"))
        if schema is not None and tools is not None:
            raise rejected("Grammar and tools are mutually exclusive", "grammar and tools")
        used = self._used(tools or [], body.get("tool_choice", "auto"))
        self.prompted.append({"tools": used or None, "messages": body["messages"]})
        if not used:
            grammar = compiled_schema(schema) if schema is not None else None
            return [
                {"content": self.text(write(self.wanted, grammar, self.habits), keeps_end=False, skips_special=True)}
            ]
        if any(tool["name"] == "no_tool" for tool in used):
            return [{"content": self.text(self.wanted, keeps_end=False, skips_special=True)}]
        called = json.loads(write("", compiled_schema({"anyOf": [_call(tool) for tool in used]})))["function"]
        name = called.pop("_name")
        function = {"name": name, "arguments": json.dumps(called)}
        return [{"content": None, "tool_calls": [{"id": "0", "type": "function", "function": function}]}]

    def _used(self, tools: list[Body], choice: Any) -> list[Body]:
        functions = [tool["function"] for tool in tools]
        match choice:
            case "none":
                return []
            case "auto" | None:
                return [*functions, {"name": "no_tool", "parameters": {"type": "object"}}] if functions else []
            case "required":
                return functions
            case {"function": {"name": name}}:
                named = [function for function in functions if function["name"] == name]
                if not named:
                    raise rejected(f"Tool with name {name} not found", "tool_error")
                return named
            case _:
                raise rejected("Failed to deserialize the JSON body into the target type: tool_choice", "validation")


def _schema(response_format: Any) -> Any:
    match response_format:
        case {"type": "json" | "json_object", "value": schema}:
            return schema
        case {"type": "json_schema", "json_schema": {"schema": schema}} | {"type": "json_schema", "value": schema}:
            return schema
        case None:
            return None
        case _:
            raise rejected("Failed to deserialize the JSON body into the target type: response_format", "validation")


def _call(function: Body) -> Body:
    parameters = function.get("parameters") or {}
    properties = {"_name": {"type": "string", "const": function["name"]}, **parameters.get("properties", {})}
    call = {
        "type": "object",
        "properties": properties,
        "required": ["_name", *parameters.get("required", [])],
        "additionalProperties": False,
    }
    return {"type": "object", "properties": {"function": call}, "required": ["function"], "additionalProperties": False}
