"""Tells the middleware on top, where there is one, what a rendered prompt ended in."""

from __future__ import annotations

from starlette.types import Scope

from streamsieve.middleware.request import PROMPT


def tell_prompt_tail(scope: Scope, tail: str) -> None:
    """Before the response starts. Without the middleware, nothing."""
    extension = scope.get("extensions", {}).get(PROMPT)
    if isinstance(extension, dict):
        extension["tail"] = tail


def is_told(scope: Scope) -> bool:
    """Whether the middleware is on top."""
    return PROMPT in scope.get("extensions", {})
