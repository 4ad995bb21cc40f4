"""What a request says of calls: whether there may or must be any, and of which tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.refusal import Refused

_WITHOUT_TOOLS = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
_ALLOWED = "it has a 'mode', which is 'auto' or 'required', and a list of 'tools' that is not empty."
_SUPPORTED = "Supported values are: 'none', 'auto', and 'required'."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """A `tool_choice` and the `tools` that it leaves.

    `tools`: those that may be called, name to the schema of the parameters, in the request's order.
    `strict`: what those tools say of `strict`, where they say it.
    """

    calls: Literal["none", "auto", "required"]
    tools: Mapping[str, JsonSchema]
    strict: Mapping[str, bool]

    @classmethod
    def of(cls, body: JsonObject, request: Request) -> ToolChoice:
        """Read a chat completion request. Raises Refused where it asks for calls that there cannot be."""
        choice = body.get("tool_choice")
        needs_tools = choice == "required" or isinstance(choice, dict)
        if needs_tools and not body.get("tools"):
            raise Refused(_WITHOUT_TOOLS, "tool_choice")
        strict = dict(_strict(body.get("tools")))
        calls, names = _chosen(choice)
        for name in names or ():
            if name not in request.tools:
                message = f"no function named {name!r} was specified in the 'tools' parameter."
                raise Refused(f"Invalid value for 'tool_choice': {message}", "tool_choice")
        tools = {name: schema for name, schema in request.tools.items() if names is None or name in names}
        if not tools and not needs_tools:
            calls = "none"
        return cls(calls=calls, tools=tools, strict={name: strict[name] for name in tools if name in strict})


NO_CALLS = ToolChoice(calls="none", tools={}, strict={})
"""What a request leaves where calls are not parsed."""


def _chosen(choice: object) -> tuple[Literal["none", "auto", "required"], list[str] | None]:
    """The mode of a `tool_choice`, and the names that it allows; None for all."""
    match choice:
        case None | "auto":
            return "auto", None
        case "none" | {"type": "none"}:
            return "none", None
        case "required":
            return "required", None
        case {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto" | "required" as mode, "tools": [_, *_] as named},
        }:
            return ("auto" if mode == "auto" else "required"), [_name(one) for one in named]
        case {"type": "allowed_tools"}:
            raise Refused(f"Invalid value for 'tool_choice.allowed_tools': {_ALLOWED}", "tool_choice.allowed_tools")
        case {"type": "auto" | "required" as mode}:
            return ("auto" if mode == "auto" else "required"), None
        case {"type": "custom", **_rest}:
            return "required", []  # no function is to be called
        case dict():
            return "required", [_name(choice)]
        case str():
            raise Refused(f"Invalid value: {choice!r}. {_SUPPORTED}", "tool_choice", "invalid_value")
        case _:
            message = "Invalid type for 'tool_choice': expected a string or an object."
            raise Refused(message, "tool_choice", "invalid_type")


def _name(choice: object) -> str:
    match choice:
        case {"function": {"name": str(name)}} | {"name": str(name)}:
            return name
        case _:
            missing = "tool_choice.function.name"
            raise Refused(f"Missing required parameter: {missing!r}.", missing, "missing_required_parameter")


def _strict(tools: object) -> Iterator[tuple[str, bool]]:
    for tool in tools if isinstance(tools, list) else ():
        match tool:
            case {"function": {"name": str(name), "strict": bool(strict)}}:
                yield name, strict
