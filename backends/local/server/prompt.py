"""A chat completion request as the prompt that the model is given, by the model's own chat template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from jinja2 import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template

from streamsieve.backends.common_beginning import common_beginning
from streamsieve.backends.openai_error import bad_request
from streamsieve.backends.request_fields import Body, read_boolean, read_messages
from streamsieve.backends.template_turns import REASONING_NAMES

_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_OURS = frozenset(
    {"messages", "tools", "documents", "chat_template", "conversations", "add_generation_prompt",
     "continue_final_message", "return_assistant_tokens_mask"}
)  # fmt: skip
"""What `chat_template_kwargs` may not set: the request has fields for it, or nobody may."""
_LONGEST_TAIL = 4096
_render = cast("Callable[..., tuple[list[str], object]]", render_jinja_template)  # its annotations lie


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt. `tail`: what of it stands behind the conversation, and so belongs to the reply that is to come."""

    text: str
    tail: str


class ChatTemplate:
    """A model's chat template. From any thread.

    `variables`: the special tokens by the names that templates use. The template runs in Jinja's sandbox.
    """

    def __init__(self, source: str, variables: Mapping[str, object], *, tool_source: str | None = None) -> None:
        """`tool_source`: another template for requests with tools, where the model has one."""
        self._source = source
        self._tool_source = tool_source or source
        self._variables = dict(variables)

    def render(self, body: Body) -> RenderedPrompt:
        """The prompt for the body of a chat completion request.

        Raises ApiError (400) for messages that no prompt can be made of, and with the template's own words
        where it refuses them.
        """
        source = self._tool_source if _shown_tools(body) else self._source
        messages = [_message(message, index, source) for index, message in enumerate(read_messages(body))]
        continues = read_boolean(body, "continue_final_message")
        opens = read_boolean(body, "add_generation_prompt", default=not continues)
        if opens and continues:
            raise bad_request(
                "continue_final_message: cannot be true together with add_generation_prompt.", "continue_final_message"
            )
        variables = self._given(body)
        text = self._rendered(source, messages, variables, opens=opens, continues=continues)
        return RenderedPrompt(text, self._tail(text, source, messages, variables, continues=continues))

    def _given(self, body: Body) -> dict[str, object]:
        """The template's variables beside the messages."""
        given = body.get("chat_template_kwargs")
        if given is not None and not isinstance(given, dict):
            raise bad_request("chat_template_kwargs: must be an object.", "chat_template_kwargs")
        for name in given or ():
            if name in _OURS:
                raise bad_request(f"chat_template_kwargs: {name!r} cannot be set there.", "chat_template_kwargs")
        effort = body.get("reasoning_effort")
        return {
            **self._variables,
            "tools": _shown_tools(body),
            "documents": body.get("documents"),
            **({} if effort is None else {"reasoning_effort": effort}),
            **(given or {}),
        }

    def _rendered(
        self, source: str, messages: Sequence[Body], variables: Mapping[str, object], *, opens: bool, continues: bool
    ) -> str:
        """The text. Templates differ in whether they take the arguments of a call as an object or as JSON text."""
        refused: Exception | None = None
        for conversation in (messages, [_with_arguments_as_text(message) for message in messages]):
            try:
                texts, _ = _render(
                    conversations=[conversation],
                    chat_template=source,
                    add_generation_prompt=opens,
                    continue_final_message=continues,
                    **variables,
                )
            except Exception as error:  # a template is foreign code and raises what it likes
                refused = refused or error
            else:
                return str(texts[0])
        said = (
            str(refused) if isinstance(refused, TemplateError | ValueError) else f"{type(refused).__name__}: {refused}"
        )
        raise bad_request(f"messages: the model's chat template refuses them: {said}", "messages") from refused

    def _tail(
        self, text: str, source: str, messages: Sequence[Body], variables: Mapping[str, object], *, continues: bool
    ) -> str:
        """What the prompt has more than the finished conversation, which is without the turn that is continued."""
        before = messages[:-1] if continues else messages
        try:
            [conversation], _ = _render(
                conversations=[before], chat_template=source, add_generation_prompt=False, **variables
            )
        except Exception:  # no template has to take a conversation that ends there
            conversation = ""
        return text[common_beginning(text, conversation) :][-_LONGEST_TAIL:]


def _shown_tools(body: Body) -> list[object] | None:
    """The tools that the model is told of: none where it may call none."""
    tools = body.get("tools")
    return tools if isinstance(tools, list) and tools and body.get("tool_choice") != "none" else None


def _message(message: Body, index: int, source: str) -> dict[str, object]:
    """A message as chat templates want it."""
    made = {name: value for name, value in message.items() if value is not None}
    made["content"] = _text(message.get("content"), f"messages[{index}].content")
    if made["role"] == "developer" and "developer" not in source:
        made["role"] = "system"
    reasoning = next((made[name] for name in REASONING_NAMES if isinstance(made.get(name), str)), None)
    if reasoning is not None:
        made |= dict.fromkeys(REASONING_NAMES, reasoning)
    calls = made.get("tool_calls")
    if calls is not None:
        made["tool_calls"] = _calls(calls, f"messages[{index}].tool_calls")
    return made


def _text(content: object, name: str) -> str:
    """The text of a message: templates read a string, clients may send it in parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise bad_request(f"{name}: must be a string or a list of parts.", name)
    texts = []
    for place, part in enumerate(content):
        kind = part.get("type", "text") if isinstance(part, dict) else None
        if not isinstance(part, dict) or kind not in _TEXT_PARTS:
            raise bad_request(f"{name}[{place}]: a part of type {kind!r}; this model reads text only.", name)
        text = part.get("refusal" if kind == "refusal" else "text")
        if not isinstance(text, str):
            raise bad_request(f"{name}[{place}]: its text must be a string.", name)
        texts.append(text)
    return "\n".join(texts)


def _calls(calls: object, name: str) -> list[dict[str, object]]:
    """The calls of a turn, their arguments as objects where they are JSON."""
    if not isinstance(calls, list):
        raise bad_request(f"{name}: must be a list.", name)
    made = []
    for place, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise bad_request(f"{name}[{place}]: an object with function.name is required.", name)
        made.append({**call, "function": {**function, "arguments": _parsed(function.get("arguments"))}})
    return made


def _parsed(arguments: object) -> object:
    """What a client sends as JSON text; text that is no JSON object stays text."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        parsed = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
    return parsed if isinstance(parsed, dict) else arguments


def _with_arguments_as_text(message: Body) -> Body:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    written = [{**call, "function": {**call["function"], "arguments": _written(call["function"])}} for call in calls]
    return {**message, "tool_calls": written}


def _written(function: Mapping[str, object]) -> str:
    arguments = function.get("arguments")
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
