"""What of a chat completion request bears on how its reply is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

JsonSchema = Mapping[str, object]
_NAMING = frozenset({"function", "custom", "name"})
"""A `tool_choice` that is an object with one of these names one tool; `allowed_tools` names several, or none."""
_EMPTY: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    """The part of one chat completion request that the parsers look at.

    `tools`: function name to the JSON schema of its parameters (empty where it has none).
    `parse_calls`: whether call markup means calls at all (contract, rule 6).
    `named_tool_choice`: `tool_choice` names one function, so a `stop` stays `stop` (rule 9).
    `chat_template_kwargs`: as sent, with the request's own `reasoning_effort` where they have none, as
    engines hand it to the template; the cards say which keys switch thinking.
    `prompt_tail`: what the rendered prompt ended in, or None where the prompt is not seen.
    `unknown_tools`: what a call of a function that is not in `tools` is (contract, rule 6).
    `max_calls`: later ones are left out, as `parallel_tool_calls: false` leaves out all but one (rule 10).
    `earlier_calls`: tool calls in the history; Kimi counts its call ids on from there.
    """

    tools: Mapping[str, JsonSchema] = field(default_factory=dict)
    parse_calls: bool = False
    named_tool_choice: bool = False
    parallel_tool_calls: bool = True
    include_reasoning: bool = True
    chat_template_kwargs: Mapping[str, object] = field(default_factory=lambda: _EMPTY)  # unhashable before 3.12
    prompt_tail: str | None = None
    earlier_calls: int = 0
    unknown_tools: Literal["call", "text"] = "call"
    max_calls: int = 1024

    @property
    def calls_allowed(self) -> int:
        """How many calls a reply may have."""
        return self.max_calls if self.parallel_tool_calls else 1

    @classmethod
    def from_body(
        cls,
        body: Mapping[str, object],
        *,
        prompt_tail: str | None = None,
        unknown_tools: Literal["call", "text"] = "call",
        max_calls: int = 1024,
    ) -> Request:
        """Read the body of `POST /v1/chat/completions`.

        Never raises: whether the request is acceptable is the engine's to say, so what has not the
        expected shape counts as absent.
        """
        tools = _tools(body.get("tools"))
        choice = body.get("tool_choice")
        kwargs = body.get("chat_template_kwargs")
        effort = body.get("reasoning_effort")
        return cls(
            tools=tools,
            parse_calls=bool(tools) and choice != "none" and not _says(choice, "none"),
            named_tool_choice=isinstance(choice, Mapping) and bool(_NAMING & choice.keys()),
            parallel_tool_calls=body.get("parallel_tool_calls") is not False,
            include_reasoning=body.get("include_reasoning") is not False,
            chat_template_kwargs=({} if effort is None else {"reasoning_effort": effort})
            | (dict(kwargs) if isinstance(kwargs, Mapping) else {}),
            prompt_tail=prompt_tail,
            earlier_calls=_earlier_calls(body.get("messages")),
            unknown_tools=unknown_tools,
            max_calls=max_calls,
        )


def _says(choice: object, kind: str) -> bool:
    """Whether a `tool_choice` that is an object is of this kind."""
    return isinstance(choice, Mapping) and choice.get("type") == kind


def _tools(tools: object) -> dict[str, JsonSchema]:
    found: dict[str, JsonSchema] = {}
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            continue
        parameters = function.get("parameters")
        found[function["name"]] = parameters if isinstance(parameters, Mapping) else _EMPTY
    return found


def _earlier_calls(messages: object) -> int:
    count = 0
    for message in messages if isinstance(messages, list) else ():
        calls = message.get("tool_calls") if isinstance(message, Mapping) else None
        count += len(calls) if isinstance(calls, list) else 0
    return count
