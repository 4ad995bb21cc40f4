"""A backend as it is served: the middleware on top, and in front of both, where one is set, the API key."""

from __future__ import annotations

import hmac

from starlette.types import ASGIApp, Receive, Scope, Send

from streamsieve.backends.openai_error import ApiError
from streamsieve.middleware import SieveMiddleware
from streamsieve.wire.settings import Settings

OPEN_PATHS = frozenset({"/health"})
"""Answered without the key: load balancers ask here."""


def application(backend: ASGIApp, settings: Settings, *, api_key: str | None = None) -> ASGIApp:
    """What `streamsieve serve` runs. The lifespan reaches the backend, which closes what it holds."""
    app: ASGIApp = SieveMiddleware(backend, settings=settings)
    return app if api_key is None else ApiKeyMiddleware(app, api_key)


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
