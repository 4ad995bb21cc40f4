"""The middleware for servers that load one by name and give it nothing."""

from __future__ import annotations

import os

from streamsieve.middleware.asgi import Application
from streamsieve.middleware.sieve import SieveMiddleware
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.settings import Settings

PREFIX = "STREAMSIEVE_"
ASKING = ("REASONING_PARSER", "TOOL_PARSER", "STAGES")


class EnvironmentSieveMiddleware(SieveMiddleware):
    """`SieveMiddleware` with its settings from the environment.

    For `vllm serve --middleware streamsieve.middleware.EnvironmentSieveMiddleware` and its like:

        STREAMSIEVE_REASONING_PARSER=qwen3 STREAMSIEVE_TOOL_PARSER=hermes vllm serve …

    Each field of `Settings` in capitals after `STREAMSIEVE_`; see `Settings.from_environment`. The
    environment is read at construction, which is when the server builds its app. An environment that
    asks for nothing is an error rather than a middleware that does nothing: `STREAMSIEVE_TOOL_PARSER=none`
    says that nothing is meant.
    """

    def __init__(self, app: Application) -> None:
        if not any(os.environ.get(PREFIX + name) for name in ASKING):
            names = ", ".join(PREFIX + name for name in ASKING)
            raise ConfigurationError(f"the environment asks for nothing: set one of {names} ('none' where you mean it)")
        super().__init__(app, settings=Settings.from_environment(os.environ))
