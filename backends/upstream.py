"""A gateway to one OpenAI-compatible server: every request goes on, bodies stream both ways."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from urllib.parse import quote

import anyio
import httpx2
from starlette.types import Message, Receive, Scope, Send

from streamsieve.backends.hop_by_hop import end_to_end
from streamsieve.backends.openai_error import ApiError
from streamsieve.parsers.errors import ConfigurationError

logger = logging.getLogger(__name__)

READ_TIMEOUT = 600.0
"""Seconds between two pieces of a response: the `openai` client's own patience, so the client gives up first."""

LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=2.0)
"""As many connections as there are clients. An idle one is dropped well before uvicorn's 5 s, else a
request could go out on a connection that the upstream is just closing."""


class UpstreamBroke(ConnectionError):
    """The upstream failed in the middle of a response.

    The status is out by then, so the error goes to the ASGI server, which closes the connection: a body
    that just stopped would read as complete.
    """


class Upstream:
    """An ASGI application that sends on what it gets.

    A transport is used rather than an `httpx2` client: what a client adds (cookies, redirects, decoding,
    default headers, proxies from the environment) is what a gateway must leave alone. The connection pool
    is closed by the lifespan's end, or by `aclose` where no server runs the lifespan (mounted applications).
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        connect_timeout: float = 10.0,
        read_timeout: float = READ_TIMEOUT,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """`url`: the server's root, or its `/v1`. `api_key` replaces the client's `Authorization`. Timeouts
        in seconds. `transport` is closed with the application."""
        self._url = _server(url)
        self._authorization = None if api_key is None else b"Bearer " + api_key.encode()
        self._timeout = {"connect": connect_timeout, "read": read_timeout, "write": read_timeout, "pool": None}
        self._transport = transport or httpx2.AsyncHTTPTransport(limits=LIMITS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP exchange or the lifespan; websockets are refused (HTTP 403)."""
        match scope["type"]:
            case "http":
                await self._exchange(scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1008})
            case "lifespan":
                await receive()
                await send({"type": "lifespan.startup.complete"})
                await receive()
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})

    async def aclose(self) -> None:
        """Close the connections to the upstream."""
        await self._transport.aclose()

    async def _exchange(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        if first["type"] == "http.disconnect":
            return
        body = _RequestBody(first, receive)
        failure: Exception | None = None  # leaves as itself, not in the group that a task group makes of it
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_gone, body, tasks.cancel_scope)
            try:
                await self._relay(self._request(scope, body), body, scope, receive, send)
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
        if isinstance(failure, httpx2.TransportError):
            raise UpstreamBroke(f"{self._url}: {failure!r}") from failure
        if failure is not None:
            raise failure

    async def _relay(
        self, request: httpx2.Request, body: _RequestBody, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            response = await self._answer(request, again=not body.streams)
        except _ClientLeft:
            return
        except httpx2.TransportError as error:
            logger.warning("upstream %s: %r", self._url, error)
            await self._failure(error).response()(scope, receive, send)
            return
        body.finished.set()
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": response.status_code,
                    "headers": end_to_end(response.headers.raw),
                }
            )
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            async for chunk in response.stream:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _answer(self, request: httpx2.Request, *, again: bool) -> httpx2.Response:
        """The response, as soon as its headers are there.

        An upstream may be closing a kept connection just as the request goes out on it. A failure there
        before any response says nothing about the upstream, so the request goes out `again`, as the
        `openai` client would send it; on a connection of its own it does not.
        """
        while True:
            route = _Route()
            request.extensions["trace"] = route.note
            try:
                return await self._transport.handle_async_request(request)
            except httpx2.TransportError as error:
                if isinstance(error, httpx2.TimeoutException) or not (again and route.is_kept_connection):
                    raise

    def _request(self, scope: Scope, body: _RequestBody) -> httpx2.Request:
        headers = [field for field in end_to_end(scope["headers"]) if field[0] not in (b"host", b"expect")]
        if self._authorization is not None:
            headers = [field for field in headers if field[0] != b"authorization"]
            headers.append((b"authorization", self._authorization))
        # RFC 9110 §7.6.3 wants it of a gateway, and a loop shows in it. `Expect` was for our server: it has answered.
        headers.append((b"via", f"{scope.get('http_version', '1.1')} streamsieve".encode()))
        return httpx2.Request(
            scope["method"],
            self._url,
            headers=headers,
            content=body if body.streams else body.first,
            # The target as raw bytes: a URL object would write some of them another way.
            extensions={"timeout": self._timeout, "target": _target(self._url, scope)},
        )

    def _failure(self, error: httpx2.TransportError) -> ApiError:
        if isinstance(error, httpx2.TimeoutException):
            message = f"The upstream server at {self._url} did not answer in time."
            return ApiError(504, message, "server_error", code="upstream_timeout")
        fault = "cannot be reached" if isinstance(error, httpx2.ConnectError) else "failed before it answered"
        message = f"The upstream server at {self._url} {fault}: {str(error) or type(error).__name__}"
        return ApiError(502, message, "server_error", code="upstream_unreachable")


class _Route:
    """Which way a request goes, from what `httpcore2` tells of it."""

    def __init__(self) -> None:
        self._is_connecting = False
        self._is_sent = False

    async def note(self, event: str, info: object) -> None:
        """The `trace` extension of the request."""
        if event.startswith("connection.connect"):
            self._is_connecting = True
        elif event.endswith(".send_request_headers.started"):
            self._is_sent = True

    @property
    def is_kept_connection(self) -> bool:
        """Whether it went out on a connection that had served another request."""
        return self._is_sent and not self._is_connecting


class _ClientLeft(Exception):
    """The client went away while its request was on its way."""


class _RequestBody:
    """The client's request body as it comes; when it is through, the client's going away is awaited here.

    One reader at a time: `receive` belongs to the iterator until `finished` is set.
    """

    def __init__(self, first: Message, receive: Receive) -> None:
        self.first: bytes = first.get("body", b"")
        self.streams: bool = first.get("more_body", False)
        self.finished = anyio.Event()
        self._receive = receive
        if not self.streams:
            self.finished.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.first
        more = self.streams
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _ClientLeft
            more = message.get("more_body", False)
            yield message.get("body", b"")
        self.finished.set()

    async def client_gone(self) -> None:
        """Return when the client has gone away (or, as servers tell it, when the response is out)."""
        await self.finished.wait()
        while (await self._receive())["type"] != "http.disconnect":
            continue


async def _cancel_when_gone(body: _RequestBody, scope: anyio.CancelScope) -> None:
    await body.client_gone()
    scope.cancel()


def _server(url: str) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ConfigurationError(f"upstream: {url!r} is no URL: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigurationError(f"upstream: {url!r} must be an http:// or https:// URL with a host")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise ConfigurationError(f"upstream: {url!r} has a port that cannot be; ports are 1 to 65535")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise ConfigurationError(f"upstream: {url!r} may have no user, query or fragment; use the API key option")
    return parsed


def _target(server: httpx2.URL, scope: Scope) -> bytes:
    """The path to ask the upstream for, and the query, byte for byte as the client wrote them.

    What we are mounted under is taken off. A `/v1` that ends the server's URL is not added: clients write
    it in theirs, and `/health` and the like are beside it, not below.
    """
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    path = path.removeprefix(quote(scope.get("root_path", "")).encode())
    base = server.raw_path.rstrip(b"/").removesuffix(b"/v1")
    target = base + (path if path.startswith(b"/") else b"/" + path)
    query: bytes = scope["query_string"]
    return target + b"?" + query if query else target
