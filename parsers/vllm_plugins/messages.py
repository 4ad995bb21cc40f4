"""Stand-ins for vLLM's message and request classes: plain fields, made with keywords."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import ClassVar


class Fields:
    """Fields with their defaults; whatever else is given is a field too. A default that is a list is made anew."""

    defaults: ClassVar[Mapping[str, object]] = {}

    def __init__(self, **fields: object) -> None:
        made = {name: list(value) if isinstance(value, list) else value for name, value in self.defaults.items()}
        self.__dict__.update(made | fields)

    def model_dump(self, *, exclude_none: bool = False, **_: object) -> dict[str, object]:
        """The fields, and those of the fields."""
        return {name: _plain(value) for name, value in vars(self).items() if not (exclude_none and value is None)}

    def model_dump_json(self, *, exclude_none: bool = False, **_: object) -> str:
        """The same as JSON."""
        return json.dumps(self.model_dump(exclude_none=exclude_none))


class FunctionCall(Fields):
    """A function's name and argument text."""


class ToolCall(Fields):
    """One call of a whole reply."""

    def __init__(self, **fields: object) -> None:
        super().__init__(**{"id": make_tool_call_id(), "type": "function"} | fields)


class DeltaFunctionCall(Fields):
    """What a delta adds to a function call."""

    defaults: ClassVar[Mapping[str, object]] = {"name": None, "arguments": None}


class DeltaToolCall(Fields):
    """What a delta adds to the call at an index."""

    defaults: ClassVar[Mapping[str, object]] = {"id": None, "type": None, "function": None}


class DeltaMessage(Fields):
    """What a delta adds to the message."""

    defaults: ClassVar[Mapping[str, object]] = {"role": None, "content": None, "reasoning": None, "tool_calls": []}


class ExtractedToolCallInformation(Fields):
    """The calls of a whole reply, and its content."""

    defaults: ClassVar[Mapping[str, object]] = {"tools_called": False, "tool_calls": [], "content": None}


class FunctionDefinition(Fields):
    """A tool's name, description and schema."""

    defaults: ClassVar[Mapping[str, object]] = {"description": None, "parameters": None, "strict": None}


class ChatCompletionToolsParam(Fields):
    """A tool of a request."""

    defaults: ClassVar[Mapping[str, object]] = {"type": "function", "function": None}


class ChatCompletionRequest(Fields):
    """As much of a request as our parsers know of it; its messages are not among that."""

    defaults: ClassVar[Mapping[str, object]] = {
        "messages": [],
        "tools": None,
        "tool_choice": "none",
        "parallel_tool_calls": True,
        "include_reasoning": True,
        "chat_template_kwargs": None,
        "skip_special_tokens": True,
        "structured_outputs": None,
        "response_format": None,
        "stream": False,
    }


class ChatCompletionNamedToolChoiceParam(Fields):
    """A `tool_choice` of one function: only to be named."""


class ResponsesRequest(Fields):
    """Of the Responses API: only to be named."""


def make_tool_call_id(*_: object, **__: object) -> str:
    """An id as vLLM makes it."""
    return f"chatcmpl-tool-{random_uuid()}"


def random_uuid() -> str:
    """32 random hex digits."""
    return secrets.token_hex(16)


def _plain(value: object) -> object:
    if isinstance(value, Fields):
        return value.model_dump()
    return [_plain(one) for one in value] if isinstance(value, list) else value
