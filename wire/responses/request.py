"""What of a request of the Responses API bears on how its reply is read."""

from __future__ import annotations

from streamsieve.wire.json_text import JsonObject


def as_chat(body: JsonObject) -> JsonObject:
    """The fields of `body` that say how the reply is read, in the shape of a chat completion request.

    For an upstream that is sent `body` itself: nothing is refused, and what is none of these stays away.
    """
    given = body.get("tools")
    tools = [
        {"type": "function", "function": tool}
        for tool in (given if isinstance(given, list) else [])
        if isinstance(tool, dict) and tool.get("type") == "function"
    ]
    items = body.get("input")
    calls = [
        item
        for item in (items if isinstance(items, list) else [])
        if isinstance(item, dict) and item.get("type") == "function_call"
    ]
    reasoning = body.get("reasoning")
    return body | {
        "tools": tools,
        "reasoning_effort": reasoning.get("effort") if isinstance(reasoning, dict) else None,
        "messages": [{"role": "assistant", "tool_calls": calls}],
    }


def tool_choice(body: JsonObject) -> object:
    """What `tool_choice` says of functions, in the shape of a chat completion request; None where it says nothing."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") == "function":
        return choice
    if choice.get("type") != "allowed_tools":  # a tool that only the upstream knows
        return None
    allowed = choice.get("tools")
    tools = allowed if isinstance(allowed, list) else []
    functions = [tool for tool in tools if isinstance(tool, dict) and tool.get("type") == "function"]
    if tools and not functions:
        return None
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode"), "tools": functions}}
