"""vLLM 0.33 without parsers, by its `ChatCompletionRequest` and `OnlineRenderer.render_chat`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import xgrammar
from streamsieve_standins.model import compiled_schema, compiled_tag, write
from streamsieve_standins.standin import Body, Rejected, StandIn

_CONSTRAINTS = {"json", "regex", "choice", "grammar", "json_object", "structural_tag"}
_PARAMETERS = _CONSTRAINTS | {"disable_any_whitespace", "disable_additional_properties", "whitespace_pattern"}


def rejected(message: str, param: str | None = None) -> Rejected:
    return Rejected(400, {"error": {"message": message, "type": "BadRequestError", "param": param, "code": 400}})


@dataclass
class Vllm(StandIn):
    """`excludes_tools`: `--exclude-tools-when-tool-choice-none`."""

    excludes_tools: bool = False

    def messages(self, body: Body) -> list[dict[str, Any]]:
        choice = self._tool_choice(body)
        tools = None if choice == "none" and self.excludes_tools else body.get("tools")
        if body.get("stream_options") and not body.get("stream"):
            raise rejected("Stream options can only be defined when `stream=True`.", "stream_options")
        if body.get("continue_final_message") and body.get("add_generation_prompt", True):
            raise rejected("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
        grammar = _grammar(body)
        history = [_reasoning_renamed(message) for message in body["messages"]]
        self.prompted.append({"tools": tools, "messages": history, "tool_choice": choice if tools else None})
        text = self.text(
            write(self.wanted, grammar, self.habits),
            keeps_end=body.get("include_stop_str_in_output", False),
            skips_special=body.get("skip_special_tokens", True),
        )
        return [{"content": text, "reasoning": None} for _ in range(body.get("n") or 1)]

    def _tool_choice(self, body: Body) -> Any:
        tools = body.get("tools")
        if tools == []:
            raise rejected("`tools` must not be an empty array.", "tools")
        choice = body.get("tool_choice", "auto" if tools else "none")
        if choice in (None, "none"):
            return choice
        if tools is None:
            raise rejected("When using `tool_choice`, `tools` must be set.", "tool_choice")
        if choice not in ("auto", "required") and not isinstance(choice, dict):
            raise rejected(f"Invalid value for `tool_choice`: {choice}!", "tool_choice")
        if choice == "auto":
            flags = "--enable-auto-tool-choice and --tool-call-parser"
            raise rejected(f'"auto" tool choice requires {flags} to be set')
        raise rejected(f"tool_choice={choice!r} requires --tool-call-parser to be set")


def _grammar(body: Body) -> xgrammar.CompiledGrammar | None:
    given = {name: value for name, value in (body.get("structured_outputs") or {}).items() if value is not None}
    if unknown := given.keys() - _PARAMETERS:
        raise rejected(f"structured_outputs: unexpected keyword {unknown}", "structured_outputs")
    match body.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            given["json"] = schema
        case {"type": "json_object"}:
            given["json_object"] = True
    kinds = given.keys() & _CONSTRAINTS
    if len(kinds) > 1:
        raise rejected("You can only use one kind of constraints for structured outputs.", "structured_outputs")
    if "structural_tag" in kinds:
        if not isinstance(given["structural_tag"], str):
            raise rejected("structured_outputs.structural_tag: a string is expected", "structured_outputs")
        try:
            return compiled_tag(given["structural_tag"])
        except (RuntimeError, ValueError) as error:
            raise rejected("Invalid structured_outputs structural_tag specification.", "structured_outputs") from error
    if kinds == {"json"}:
        return compiled_schema(given["json"])
    if kinds == {"json_object"}:
        return compiled_schema({"type": "object"})
    assert not kinds, kinds
    return None


def _reasoning_renamed(message: Body) -> Body:
    said = message.pop("reasoning_content", None)
    return message if said is None or message.get("reasoning") is not None else {**message, "reasoning": said}
