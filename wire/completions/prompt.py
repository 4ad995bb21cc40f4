"""A chat completion request as a prompt, and as the request that has the upstream go on with it."""

from __future__ import annotations

from dataclasses import replace

from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared

_OF_CHAT = frozenset(
    {
        "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "documents",
        "chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message", "reasoning_effort",
        "reasoning", "include_reasoning", "max_completion_tokens", "logprobs", "top_logprobs", "modalities", "audio",
        "prediction", "store", "web_search_options", "verbosity", "parse_tool_calls", "reasoning_format",
        "separate_reasoning", "think", "echo",
    }
)  # fmt: skip
"""The fields that `POST /v1/completions` does not have, of OpenAI's chat completions and of the dialects; `echo`, which
there would be the whole prompt."""

_CHAT, _COMPLETIONS = "/chat/completions", "/completions"


def render_prompt(prepared: Prepared) -> None:
    """Make the prompt, where the settings say so. What it ends in is known from then on."""
    renderer = prepared.settings.render_prompt
    if renderer is None or prepared.upstream_api != "chat":
        return
    prompt = renderer(prepared.body)
    prepared.prompt = prompt.text
    prepared.request = replace(prepared.request, prompt_tail=prompt.tail)


def ask_with_prompt(prepared: Prepared) -> None:
    """Ask `/v1/completions` with the prompt in the place of what it was made of."""
    if prepared.prompt is None:
        return
    body = prepared.body
    asked: JsonObject = {name: value for name, value in body.items() if name not in _OF_CHAT}
    asked["prompt"] = prepared.prompt
    asked["add_special_tokens"] = False  # the template has written them
    limit = body.get("max_completion_tokens")
    # Said in any case: where it is missing a completion has 16 tokens, with null what the context has room for.
    asked["max_tokens"] = body.get("max_tokens") if limit is None else limit
    if body.get("logprobs"):
        asked["logprobs"] = body.get("top_logprobs") or 0
    prepared.path = prepared.path.removesuffix(_CHAT) + _COMPLETIONS
    prepared.send(asked)
