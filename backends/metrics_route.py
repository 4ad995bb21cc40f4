"""`/metrics`: what the backend has there, and behind it the metrics of the exchanges."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, Metric, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/metrics"
PATIENCE = 5.0
"""Seconds that the backend has to answer; Prometheus itself waits for ten."""


class MetricsMiddleware:
    """Adds to `GET /metrics`; where the backend has none, or fails, ours are all there is.

    An upstream is asked for the plain text format, the one to which lines can be added. Only metrics that are
    called after us are added: those of the Python process the upstream has under the same names.
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
        with anyio.move_on_after(PATIENCE) as waiting:
            try:
                await self._app({**scope, "headers": headers}, receive, answer)
            except ConnectionError:
                answer = _Answer()
        body = b"" if waiting.cancelled_caught else answer.lines
        body += generate_latest(_Ours())
        length = str(len(body)).encode()
        fields = [(b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode()), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": body})


class _Ours:
    """The registry, of which only our own metrics are shown."""

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        return (metric for metric in REGISTRY.collect() if metric.name.startswith("streamsieve_"))


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
