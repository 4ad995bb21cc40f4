"""A transport round a transport: chat completions go through an exchange, all else straight through.

One object per HTTP client; everything about one call lives in its exchange, so a retry is simply another
call. Errors of the inner transport, other statuses and timeouts are not its business and pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

from streamsieve.parsers.chain import run
from streamsieve.sdk_patch.family import Family, belonging, family_of
from streamsieve.sdk_patch.stream import AsyncSieveStream, SieveStream
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.settings import Settings

if TYPE_CHECKING:
    from types import TracebackType

    import httpx2

Headers = list[tuple[bytes, bytes]]

DECODED = {"", "identity", "gzip", "x-gzip", "deflate"}
"""The codings that both families decode without another package."""


class SyncTransport:
    """Has the family's `BaseTransport` mixed in where it is made (`transport_round`); closes `inner`."""

    def __init__(self, inner: httpx2.BaseTransport, settings: Settings, family: Family) -> None:
        self._inner = inner
        self._settings = settings
        self._family = family

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self._settings.matches(request.method, request.url.path):
            return self._inner.handle_request(request)
        exchange = _exchange(self._settings, request, request.read())
        if exchange.refusal is not None:
            return _refused(exchange.refusal, self._family)
        try:
            response = self._inner.handle_request(_asking_identity(request, exchange, self._family))
        except BaseException:
            run(exchange.aclose())
            raise
        given = _decoded_headers(response)
        headers = exchange.start(response.status_code, given)
        if exchange.mode == "pass":
            run(exchange.aclose())
            return response
        stream = belonging(SieveStream, self._family.SyncByteStream)(response, exchange, self._family)
        if exchange.mode == "stream":
            return _answer(response, headers, stream, self._family)
        try:
            body = stream.gather()
        except BaseException:
            stream.close()
            raise
        if body is None:
            return _answer(response, given, stream, self._family)
        stream.close()
        return _answer(response, [*headers, _length(body)], self._family.ByteStream(body), self._family)

    def close(self) -> None:
        self._inner.close()

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._inner.__exit__(exc_type, exc_value, traceback)


class AsyncTransport:
    """`SyncTransport` for asynchronous clients."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, settings: Settings, family: Family) -> None:
        self._inner = inner
        self._settings = settings
        self._family = family

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self._settings.matches(request.method, request.url.path):
            return await self._inner.handle_async_request(request)
        exchange = _exchange(self._settings, request, await request.aread())
        if exchange.refusal is not None:
            return _refused(exchange.refusal, self._family)
        try:
            response = await self._inner.handle_async_request(_asking_identity(request, exchange, self._family))
        except BaseException:
            await exchange.aclose()
            raise
        given = _decoded_headers(response)
        headers = exchange.start(response.status_code, given)
        if exchange.mode == "pass":
            await exchange.aclose()
            return response
        stream = belonging(AsyncSieveStream, self._family.AsyncByteStream)(response, exchange, self._family)
        if exchange.mode == "stream":
            return _answer(response, headers, stream, self._family)
        try:
            body = await stream.gather()
        except BaseException:
            await stream.aclose()
            raise
        if body is None:
            return _answer(response, given, stream, self._family)
        await stream.aclose()
        return _answer(response, [*headers, _length(body)], self._family.ByteStream(body), self._family)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._inner.__aexit__(exc_type, exc_value, traceback)


def transport_round(inner: httpx2.BaseTransport, settings: Settings) -> httpx2.BaseTransport:
    """`inner` with completions sorted, as a transport of the same family; `ConfigurationError` if of none."""
    family = family_of(inner, "inner")
    made = belonging(SyncTransport, family.BaseTransport)(inner, settings, family)
    return cast("httpx2.BaseTransport", made)


def async_transport_round(inner: httpx2.AsyncBaseTransport, settings: Settings) -> httpx2.AsyncBaseTransport:
    """`transport_round` for asynchronous transports."""
    family = family_of(inner, "inner")
    made = belonging(AsyncTransport, family.AsyncBaseTransport)(inner, settings, family)
    return cast("httpx2.AsyncBaseTransport", made)


def _exchange(settings: Settings, request: httpx2.Request, body: bytes) -> Exchange:
    headers = [(name.lower(), value) for name, value in request.headers.raw]
    return Exchange(settings, body, path=request.url.path, headers=headers)


def _asking_identity(request: httpx2.Request, exchange: Exchange, family: Family) -> httpx2.Request:
    """The request to send on: the caller's stays as it is, and so do its timeouts."""
    headers = request.headers.copy()
    headers["accept-encoding"] = "identity"
    headers["content-length"] = str(len(exchange.request_body))
    headers.pop("transfer-encoding", None)
    url = request.url
    if exchange.request_path != url.path:
        url = url.copy_with(path=exchange.request_path)
    return family.Request(
        request.method, url, headers=headers, content=exchange.request_body, extensions=request.extensions
    )


def _decoded_headers(response: httpx2.Response) -> Headers:
    """The response's headers as they are once `iter_bytes` has undone its coding; the coding stays where it cannot."""
    headers: Headers = [(name.lower(), value) for name, value in response.headers.raw]
    codings = response.headers.get("content-encoding")
    if codings is None or not DECODED.issuperset(coding.strip() for coding in codings.lower().split(",")):
        return headers
    return [(name, value) for name, value in headers if name not in (b"content-encoding", b"content-length")]


def _refused(refusal: Refused, family: Family) -> httpx2.Response:
    """The answer to a request that cannot be served; a 400 is what the SDK raises as a BadRequestError."""
    body = refusal.body
    headers = [(b"content-type", b"application/json"), _length(body)]
    stream = cast("httpx2.SyncByteStream", family.ByteStream(body))
    return family.Response(refusal.status, headers=headers, stream=stream)


def _length(body: bytes) -> tuple[bytes, bytes]:
    return b"content-length", str(len(body)).encode()


def _answer(response: httpx2.Response, headers: Headers, stream: object, family: Family) -> httpx2.Response:
    """The inner response with another body; `stream` is a byte stream of the family."""
    body = cast("httpx2.SyncByteStream", stream)
    return family.Response(response.status_code, headers=headers, stream=body, extensions=response.extensions)
