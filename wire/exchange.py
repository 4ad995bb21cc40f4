"""One HTTP exchange of a chat completion, without I/O."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from typing import Literal, Protocol

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.request import Request
from streamsieve.wire import json_text
from streamsieve.wire.chat_stream import ChatStream
from streamsieve.wire.chat_whole import rewrite
from streamsieve.wire.settings import Settings

Headers = Sequence[tuple[bytes, bytes]]
"""Raw, in order, names in lower case."""

Mode = Literal["pass", "stream", "whole"]

_logger = logging.getLogger(__name__)
_OF_THE_OLD_BODY = frozenset({b"content-length", b"etag", b"digest", b"content-digest", b"repr-digest", b"content-md5"})


class _Body(Protocol):
    """What is done with the body of one response."""

    @property
    def mode(self) -> Mode: ...

    def feed(self, data: bytes) -> Coroutine[object, object, bytes]: ...

    async def close(self) -> bytes: ...

    async def aclose(self) -> None: ...


class _Untouched:
    mode: Mode = "pass"

    async def feed(self, data: bytes) -> bytes:
        return data

    async def close(self) -> bytes:
        return b""

    async def aclose(self) -> None:
        """Nothing is open."""


class _Whole:
    """A JSON body, gathered up to `max_body` bytes."""

    def __init__(self, settings: Settings, request: Request) -> None:
        self.mode: Mode = "whole"
        self._settings = settings
        self._request = request
        self._gathered = bytearray()

    async def feed(self, data: bytes) -> bytes:
        if self.mode == "pass":
            return data
        self._gathered += data
        if len(self._gathered) <= self._settings.max_body:
            return b""
        _logger.warning("a response body over max_body (%d bytes) passes unparsed", self._settings.max_body)
        self.mode = "pass"
        return self._taken()

    async def close(self) -> bytes:
        return await rewrite(self._taken(), self._settings, self._request) if self.mode == "whole" else b""

    async def aclose(self) -> None:
        """Nothing is open between calls."""

    def _taken(self) -> bytes:
        body = bytes(self._gathered)
        self._gathered.clear()
        return body


class Exchange:
    """The shell hands in what it moves, and sends on what comes back.

    Called in this order: `start` once, `feed` for each piece of the response body, `close` when it has
    ended; `aclose` always, in the end. Only a chat completion with status 200, not compressed, in reply
    to a request that is a JSON object, is rewritten. What a stage raises leaves `feed` and `close`;
    nothing that the request or the response holds raises.

    In mode "whole" the shell sends nothing before `feed` or `close` has returned bytes: the length is
    known only then. `close` returns the body. `feed` returns bytes only where the body proves longer
    than `max_body`: all of it so far, unparsed; from then on the mode is "pass".
    """

    def __init__(self, settings: Settings, request_body: bytes) -> None:
        self.request_body = request_body
        self._settings = settings
        self._body: _Body = _Untouched()
        self._request = self._read_request()
        self.refusal: bytes | None = None
        """The body of a 400, in OpenAI's error shape, for a request that the format cannot serve: the shell
        answers with it, and asks nobody else."""
        try:
            if self._request and settings.format:
                settings.format.check(self._request)
        except ConfigurationError as error:
            fields = {
                "message": str(error),
                "type": "invalid_request_error",
                "param": "chat_template_kwargs",
                "code": None,
            }
            self.refusal = json_text.encode({"error": fields})

    @property
    def mode(self) -> Mode:
        """What happens to the response body; "pass" until `start`."""
        return self._body.mode

    def start(self, status: int, headers: Headers) -> list[tuple[bytes, bytes]]:
        """The headers for the client; in mode "whole" the shell adds the content-length."""
        kind = _kind(status, headers)
        request = self._request
        if kind == "pass" or request is None:
            return list(headers)
        self._body = ChatStream(self._settings, request) if kind == "stream" else _Whole(self._settings, request)
        return [(name, value) for name, value in headers if name not in _OF_THE_OLD_BODY]

    def feed(self, data: bytes) -> Coroutine[object, object, bytes]:
        """What the client gets for the next piece of the response body; in a stream, whole events."""
        return self._body.feed(data)

    async def close(self) -> bytes:
        """The upstream ended its body as it should. Returns the rest for the client; called again, nothing."""
        return await self._body.close()

    async def aclose(self) -> None:
        """The exchange is over, whichever way: free what is open. Idempotent."""
        await self._body.aclose()

    def _read_request(self) -> Request | None:
        if len(self.request_body) > self._settings.max_body:
            _logger.warning("the reply to a request over max_body (%d bytes) passes unparsed", self._settings.max_body)
            return None
        try:
            body = json_text.decode(self.request_body)
        except json_text.NotJsonError:
            return None
        if not isinstance(body, dict):
            return None
        settings = self._settings
        return Request.from_body(body, prompt_tail=settings.prompt_tail, unknown_tools=settings.unknown_tools)


def _kind(status: int, headers: Headers) -> Mode:
    codings = b",".join(value for name, value in headers if name == b"content-encoding").lower().split(b",")
    if status != 200 or any(coding.strip() not in (b"", b"identity") for coding in codings):
        return "pass"
    match dict(headers).get(b"content-type", b"").partition(b";")[0].strip().lower():
        case b"text/event-stream":
            return "stream"
        case b"application/json":
            return "whole"
        case _:
            return "pass"
