"""A request of the Responses API as a request for a chat completion."""

from __future__ import annotations

from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.responses.history import messages_of

_RENAMED = {"max_output_tokens": "max_tokens"}
"""`max_tokens` and not `max_completion_tokens`: it is the one that every server knows."""

_NOT_PASSED = frozenset(
    {
        "background",
        "include",
        "input",
        "instructions",
        "max_tool_calls",
        "metadata",
        "parallel_tool_calls",
        "reasoning",
        "store",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "truncation",
    }
)
"""What is translated below, or says nothing to a chat completion; fields that neither API has are passed on."""

_OF_THE_STORE = ("previous_response_id", "conversation", "prompt")
"""What refers to something that OpenAI keeps, and nobody here does."""

_IDLE = ("auto", "none")
"""What a `tool_choice` may be without tools."""

_LOGPROBS = "message.output_text.logprobs"


def translated(body: JsonObject) -> JsonObject:
    """The chat completion request for `body`; raises Refused for what chat completions cannot do."""
    _check(body)
    chat: JsonObject = {
        _RENAMED.get(name, name): value
        for name, value in body.items()
        if name not in _NOT_PASSED and name not in _OF_THE_STORE and value is not None
    }
    chat["messages"] = messages_of(body.get("instructions"), body.get("input"))
    if body.get("stream") is True:
        chat["stream_options"] = {"include_usage": True}
    return chat | _tools(body) | _reasoning(body) | _text(body) | _logprobs(body)


def _check(body: JsonObject) -> None:
    for name in _OF_THE_STORE:
        if body.get(name) is not None:
            raise Refused(
                f"{name}: nothing is stored here; send the whole conversation in input.", name, "unsupported_parameter"
            )
    if body.get("background"):
        raise Refused("background: not supported here.", "background", "unsupported_parameter")
    if body.get("n") not in (None, 1):
        raise Refused("n: the Responses API makes one reply.", "n", "unsupported_parameter")


def _tools(body: JsonObject) -> JsonObject:
    """`tools` and what is said of them; servers refuse that where there are none, so what says nothing is left out."""
    given = body.get("tools")
    if given is None:
        given = []
    if not isinstance(given, list):
        raise Refused("tools: must be a list.", "tools")
    tools = [_tool(tool, number) for number, tool in enumerate(given)]
    choice = body.get("tool_choice")
    match choice:
        case {"type": "allowed_tools", "mode": str(mode), "tools": list(allowed)}:
            choice, tools = mode, _allowed(tools, allowed)
        case {"type": "function", "name": str(name)}:
            choice = {"type": "function", "function": {"name": name}}
        case {"type": str(kind)}:
            raise Refused(
                f"tool_choice: {kind!r} cannot be asked of a chat completions upstream; choices: none, auto, "
                "required, a function with its name, allowed_tools.",
                "tool_choice",
                "unsupported_value",
            )
    chosen: JsonObject = {} if choice is None or (choice in _IDLE and not tools) else {"tool_choice": choice}
    if not tools:
        return chosen
    parallel = body.get("parallel_tool_calls")
    return chosen | {"tools": tools} | ({} if parallel is None else {"parallel_tool_calls": parallel})


def _tool(tool: object, number: int) -> JsonObject:
    match tool:
        case {"type": "function", "name": str(name), **fields}:
            function = {"name": name, **{name: value for name, value in fields.items() if value is not None}}
            return {"type": "function", "function": function}
        case {"type": "function"}:
            raise Refused(f"tools[{number}].name: must be a string.", f"tools[{number}].name")
        case {"type": str(kind)}:
            raise Refused(
                f"tools[{number}]: {kind!r} cannot be offered here; a chat completions upstream has functions only.",
                f"tools[{number}].type",
                "unsupported_value",
            )
    raise Refused(f"tools[{number}]: must be an object with a type.", f"tools[{number}]")


def _allowed(tools: list[JsonObject], allowed: list[object]) -> list[JsonObject]:
    """The tools that `allowed` names; chat completions servers know no `allowed_tools`, but this comes to the same."""
    names = [tool.get("name") for tool in allowed if isinstance(tool, dict)]
    kept = [tool for tool in tools if isinstance(tool["function"], dict) and tool["function"]["name"] in names]
    if not kept or len(kept) < len(names):
        raise Refused("tool_choice.tools: each must be a function that is in tools.", "tool_choice")
    return kept


def _reasoning(body: JsonObject) -> JsonObject:
    match body.get("reasoning"):
        case {"effort": str(effort)}:
            return {"reasoning_effort": effort}
    return {}


def _text(body: JsonObject) -> JsonObject:
    """`text.format` and `text.verbosity`."""
    text = body.get("text")
    if text is None:
        return {}
    if not isinstance(text, dict):
        raise Refused("text: must be an object.", "text")
    verbosity = text.get("verbosity")
    chat: JsonObject = {} if verbosity is None else {"verbosity": verbosity}
    match text.get("format"):
        case None | {"type": "text"}:
            return chat
        case {"type": "json_object"}:
            return chat | {"response_format": {"type": "json_object"}}
        case {"type": "json_schema", **schema}:
            named = {name: value for name, value in schema.items() if value is not None}
            return chat | {"response_format": {"type": "json_schema", "json_schema": named}}
    raise Refused("text.format: its type must be text, json_object or json_schema.", "text.format")


def _logprobs(body: JsonObject) -> JsonObject:
    include = body.get("include")
    wanted = isinstance(include, list) and _LOGPROBS in include
    top = body.get("top_logprobs")
    if not wanted and not top:
        return {}
    return {"logprobs": True} | ({"top_logprobs": top} if top else {})
