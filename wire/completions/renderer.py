"""Who makes a prompt of a chat completion request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol


class Prompt(Protocol):
    """A rendered prompt: its `text`, and of that the `tail` that stands behind the conversation."""

    @property
    def text(self) -> str: ...

    @property
    def tail(self) -> str: ...


Renderer = Callable[[Mapping[str, object]], Prompt]
"""Makes the prompt of the body of a chat completion request; raises Refused where there is none."""
