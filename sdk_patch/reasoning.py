"""The reasoning tray of a message, which the SDK carries but has no attribute for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessage
    from openai.types.chat.chat_completion_chunk import ChoiceDelta

FIELDS = ("reasoning", "reasoning_content")


def reasoning(message: ChatCompletionMessage | ChoiceDelta | Mapping[str, object]) -> str | None:
    """The reasoning of a message or a delta, whichever of its two names the server used; None where empty."""
    for field in FIELDS:
        text = message.get(field) if isinstance(message, Mapping) else getattr(message, field, None)
        if isinstance(text, str) and text:
            return text
    return None
