"""How a reply starts, as far as the request itself says more of it than `chat_template_kwargs`."""

from __future__ import annotations

from dataclasses import replace

from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.wire.request.prepared import Prepared


def follow_effort(prepared: Prepared) -> None:
    """Thinking switched as the upstream switches it for a `reasoning_effort`."""
    dialect, request = prepared.settings.dialect, prepared.request
    effort = prepared.body.get("reasoning_effort")
    if dialect is None or not isinstance(effort, str):
        return
    switches = dict.fromkeys(dialect.effort_switches, effort != "none")
    if switches:
        kwargs = {**switches, **request.chat_template_kwargs}
        prepared.request = replace(request, chat_template_kwargs=kwargs)


def follow_sorted_thinking(prepared: Prepared) -> None:
    """Where the upstream sorts thinking out itself, only an opener in its text begins any."""
    settings, dialect = prepared.settings, prepared.settings.dialect
    format = settings.format
    if dialect is None or dialect.thinking == "raw" or format is None or format.reasoning is None or prepared.prompt:
        return
    prepared.settings = settings.reading(replace(format, reasoning=replace(format.reasoning, starts="marked")))


def follow_final_message(prepared: Prepared) -> None:
    """Where the last message is gone on with, the reply starts in the tray that it ends in."""
    format, messages = prepared.settings.format, prepared.body.get("messages")
    if format is None or format.reasoning is None or not isinstance(messages, list) or not messages:
        return
    if not _continues(prepared, messages[-1]):
        return
    tail = _tail(messages[-1], format.reasoning.of(prepared.request))
    if tail is not None:
        prepared.request = replace(prepared.request, prompt_tail=tail)


def _continues(prepared: Prepared, message: object) -> bool:
    if prepared.body.get("continue_final_message") is True:
        return True
    dialect = prepared.settings.dialect
    is_the_assistants = isinstance(message, dict) and message.get("role") == "assistant"
    return is_the_assistants and dialect is not None and dialect.continues_unasked


def _tail(message: object, span: ReasoningSpan) -> str | None:
    """What a prompt ends in that ends in this message, left open; None where it says nothing yet."""
    if not isinstance(message, dict):
        return None
    content = _text(message.get("content"))
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    opener, closer = span.pairs[0]
    if any(tag in content for pair in span.pairs for tag in pair):
        return content
    if content:
        return f"{closer}{content}"
    return f"{opener}{reasoning}" if isinstance(reasoning, str) and reasoning else None


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
