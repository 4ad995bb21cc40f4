"""What every driver shares: what is asked, the tools, and the one JSON object that a driver prints.

A driver is run as `python DRIVER MODELS URL...`, the models separated by commas.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

PROMPT = "How are the tides?"
ASKED = [{"role": "user", "content": PROMPT}]
ANSWERED = "2.4 m"
"""What each tool answers."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_tide",
            "description": "The tides of a port.",
            "parameters": {
                "type": "object",
                "properties": {"port": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["port", "days"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "list_ports",
            "description": "The ports that have tides.",
            "parameters": {"type": "object", "properties": {}},
        },
    },
]

Turn = dict[str, object]
Drive = Callable[[str, str], Turn]
"""Of a base URL and a model."""


def turn(
    *,
    reasoning: str | None,
    content: str | None,
    calls: Iterable[tuple[str, object]],
    finish_reason: str | None,
    then: str | None,
) -> Turn:
    """One reply as the client shows it. `then`: the content of the next one, after the tools have answered."""
    return {
        "reasoning": reasoning or None,
        "content": content or None,
        "calls": [list(call) for call in calls],
        "finish_reason": finish_reason,
        "then": then or None,
    }


def drive(whole: Drive, streamed: Drive) -> None:
    """Print `{URL: {MODEL: {"whole": turn, "streamed": turn}}}`."""
    models, *urls = sys.argv[1:]
    found: dict[str, Any] = {
        url: {model: {"whole": whole(url, model), "streamed": streamed(url, model)} for model in models.split(",")}
        for url in urls
    }
    json.dump(found, sys.stdout)
