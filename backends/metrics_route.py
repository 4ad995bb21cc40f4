"""`/metrics`: what the backend has there, and behind it the metrics of the exchanges."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/metrics"


class MetricsMiddleware:
    """Adds to `GET /metrics`; where the backend has none, ours are all there is.

    An upstream is asked for the plain text format, the one to which lines can be added.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `GET /metrics`; everything else passes."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        headers = [field for field in scope["headers"] if field[0] not in (b"accept", b"accept-encoding")]
        answer = _Answer()
        await self._app({**scope, "headers": headers}, receive, answer)
        body = answer.lines + generate_latest(REGISTRY)
        length = str(len(body)).encode()
        fields = [(b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode()), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": body})


class _Answer:
    """The backend's own answer, gathered."""

    def __init__(self) -> None:
        self._is_text = False
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kinds = [value for name, value in message.get("headers", ()) if name.lower() == b"content-type"]
            self._is_text = message["status"] == 200 and all(kind.startswith(b"text/plain") for kind in kinds)
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")

    @property
    def lines(self) -> bytes:
        """The metrics in it; none where it was an error, or in another format."""
        body = bytes(self._body) if self._is_text else b""
        return body if not body or body.endswith(b"\n") else body + b"\n"
