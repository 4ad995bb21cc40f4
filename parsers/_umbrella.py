"""streamsieve: a model's raw stream, sorted into reasoning, content and tool calls.

The rooms are `streamsieve.parsers` (text to events), `streamsieve.wire` (the OpenAI wire),
`streamsieve.middleware` (ASGI), `streamsieve.sdk_patch` (the `openai` client), `streamsieve.backends`
(sources of raw text) and `streamsieve.cli`. This file is installed as `streamsieve/__init__.py`; it
imports no room until one of the names below is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamsieve.middleware import SieveMiddleware
    from streamsieve.parsers.errors import ConfigurationError
    from streamsieve.sdk_patch import wrap

__all__ = ["ConfigurationError", "SieveMiddleware", "__version__", "wrap"]
__version__ = "0.1.0"

_HOMES = {
    "ConfigurationError": "streamsieve.parsers.errors",
    "SieveMiddleware": "streamsieve.middleware",
    "wrap": "streamsieve.sdk_patch",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
