"""The middleware itself: it only decides, and keeps nothing between requests."""

from __future__ import annotations

from typing import Unpack

from streamsieve.middleware.asgi import Application, Message, Receive, Scope, Send, headers_of, route_path
from streamsieve.middleware.request import NARROWED, Replay, announced_length, moved, narrowed, read_body
from streamsieve.middleware.responder import Responder, refuse
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.options import Options, settings_from
from streamsieve.wire.settings import Settings


class SieveMiddleware:
    """Sorts the chat completions and responses of an ASGI app into reasoning, content and tool calls.

    `app.add_middleware(SieveMiddleware, tool_parser="hermes")`, or round any ASGI app. The keywords are
    the fields of `Settings`; `settings=` gives them ready made instead. Raises `ConfigurationError` at
    construction for settings that cannot work. With neither parser nor stage it only normalises.

    Ours are the POST requests to `paths`, below `root_path`. Their body is read ahead of the app, up to
    `max_body` bytes; a longer one goes to the app with nothing done. Every other scope and message goes
    through as the very object it is. Put it inside of what compresses: an encoded body is not touched.
    What the app raises passes, and frees what is held of the reply; before that, the client of a stream
    gets an error event.
    """

    def __init__(self, app: Application, *, settings: Settings | None = None, **options: Unpack[Options]) -> None:
        self.app = app
        self.settings = settings_from(settings, options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_ours(scope):
            await self.app(scope, receive, send)
            return
        messages, body = await read_body(receive, self.settings.max_body)
        replay = Replay(messages, receive)
        if body is None:
            await self.app(scope, replay, send)
            return
        path = route_path(scope)
        exchange = Exchange(self.settings, body, path=path, headers=headers_of(scope))
        if exchange.refusal is not None:
            await refuse(send, exchange.refusal)
            return
        inner = narrowed(scope, len(exchange.request_body))
        if exchange.request_path != path:
            inner.update(moved(scope, exchange.request_path))
        request: Message = {"type": "http.request", "body": exchange.request_body, "more_body": False}
        responder = Responder(exchange, send, inner)
        try:
            await self.app(inner, Replay([request], receive), responder)
        except Exception:
            await responder.break_off()
            raise
        finally:
            # What the app left in its scope, as a router leaves the route, is for the middleware outside.
            scope.update({name: value for name, value in inner.items() if name not in NARROWED})
            await exchange.aclose()

    def _is_ours(self, scope: Scope) -> bool:
        return (
            scope["type"] == "http"
            and self.settings.matches(str(scope["method"]), route_path(scope))
            and announced_length(scope) <= self.settings.max_body
        )
