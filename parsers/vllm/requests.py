"""A request of vLLM's, chat completions or responses, as our parsers see one."""

from __future__ import annotations

from collections.abc import Mapping

from streamsieve.parsers.request import Request

_PLAIN_CHOICES = (None, "auto", "required", "none")


def read_request(request: object) -> Request:
    """What of `request`, one of vLLM's pydantic models, bears on how its reply is read."""
    choice = getattr(request, "tool_choice", None)
    body: dict[str, object] = {
        "tools": [_tool(tool) for tool in getattr(request, "tools", None) or ()],
        "tool_choice": choice if choice in _PLAIN_CHOICES else {},  # an object: a named function
        "parallel_tool_calls": getattr(request, "parallel_tool_calls", None),
        "chat_template_kwargs": getattr(request, "chat_template_kwargs", None),
        "messages": getattr(request, "messages", None),
    }
    return Request.from_body(body)


def _tool(tool: object) -> Mapping[str, object]:
    """A tool as chat completions has it; the Responses API has name and parameters beside `type`."""
    function = _field(tool, "function") or tool
    parameters = _field(function, "parameters")
    return {"function": {"name": _field(function, "name"), "parameters": parameters}}


def _field(thing: object, name: str) -> object:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
