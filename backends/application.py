"""A backend as it is served: the middleware on top, and in front of both, where one is set, the API key."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from streamsieve.backends.broken_answer import BrokenAnswerMiddleware
from streamsieve.backends.openai_error import ApiError
from streamsieve.middleware import SieveMiddleware
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.settings import Settings

OPEN_PATHS = frozenset({"/health"})
"""Answered without the key: load balancers ask here."""


def application(
    backend: ASGIApp, settings: Settings, *, api_key: str | None = None, cors_origins: Sequence[str] = ()
) -> ASGIApp:
    """What `streamsieve serve` runs. The lifespan reaches the backend, which closes what it holds.

    With the observer "metrics" there is a `/metrics`, which wants the key as all else does.
    `cors_origins`: the origins whose pages may ask, `*` for any (https://fetch.spec.whatwg.org/#http-cors-protocol).
    """
    app: ASGIApp = BrokenAnswerMiddleware(SieveMiddleware(backend, settings=settings))
    if "metrics" in settings.observers:
        from streamsieve.backends.metrics_route import MetricsMiddleware  # needs prometheus_client

        app = MetricsMiddleware(app)
    if api_key is not None:
        app = ApiKeyMiddleware(app, api_key)
    if cors_origins:  # outermost: a browser's preflight carries no key
        app = CORSMiddleware(app, allow_origins=cors_origins, allow_methods=["*"], allow_headers=["*"])
    return app


def check_key(option: str, key: str) -> None:
    """Raise ConfigurationError where `key`, given as `option`, cannot be sent as a bearer token."""
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError(f"{option}: must be printable ASCII without spaces, and not empty")


class ApiKeyMiddleware:
    """Lets in the requests that carry `Authorization: Bearer KEY`; others get 401.

    The key is for us, so it is not handed on to the backend.
    """

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check http and websocket scopes; the lifespan passes."""
        if scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
        elif self._admits(scope):
            headers = [field for field in scope["headers"] if field[0] != b"authorization"]
            await self._app({**scope, "headers": headers}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            error = ApiError(401, "The API key is missing or wrong.", code="invalid_api_key")
            await error.response({"www-authenticate": "Bearer"})(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, key = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        # In constant time, so that answers do not tell how much of a guess was right.
        return scheme.lower() == b"bearer" and hmac.compare_digest(key.strip(), self._key)
