"""One response on its way out: everything about it that changes lives here."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import cast

from streamsieve.middleware.asgi import Headers, Message, Scope, Send, body_of, headers_of, is_last
from streamsieve.middleware.request import BODY_EXTENSIONS, prompt_tail
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.request.refusal import Refused


class Phase(enum.Enum):
    """What becomes of the app's next message."""

    WAITING = "the response has not started"
    PASSING = "it goes out as it is: not ours, or all of ours is out"
    STREAMING = "its body goes through the exchange and out at once"
    WITHHOLDING = "its body is gathered by the exchange; the start waits for the new length"


class Responder:
    """The app's `send`: the body of its response goes through the exchange, all else straight on.

    What the exchange or the server's `send` raises reaches the app. Whoever made the exchange frees it.
    """

    def __init__(self, exchange: Exchange, send: Send, scope: Scope) -> None:
        """`scope`: the one that the app was given."""
        self._exchange = exchange
        self._send = send
        self._scope = scope
        self._phase = Phase.WAITING
        self._can_tell = True  # no stage has failed, nor has the server
        self._start: Message = {}  # withheld, as it came, and the headers it is to have instead
        self._headers: Headers = []

    async def __call__(self, message: Message) -> None:
        match self._phase, message["type"]:
            case Phase.WAITING, "http.response.start":
                await self._begin(message)
            case Phase.STREAMING, "http.response.body":
                await self._stream(message)
            case Phase.WITHHOLDING, "http.response.body":
                await self._gather(message)
            case Phase.WITHHOLDING, kind if kind in BODY_EXTENSIONS:
                await self._give_up(message)
            case _:
                await self._send(message)

    async def break_off(self) -> None:
        """The app failed. The client of a stream is told in an error event; of all else the server tells it."""
        if self._phase is Phase.STREAMING and self._can_tell:
            self._phase = Phase.PASSING
            body = await self._exchange.break_off()
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _begin(self, message: Message) -> None:
        if not isinstance(message.get("headers", ()), Sequence):  # may be an iterator: read it once, for both
            message = {**message, "headers": list(headers_of(message))}
        tail = prompt_tail(self._scope)
        if tail is not None:
            self._exchange.prompt_ended_in(tail)
        headers = self._exchange.start(cast("int", message["status"]), headers_of(message))
        match self._exchange.mode:
            case "pass":
                self._phase = Phase.PASSING
                await self._send(message)
            case "stream":
                self._phase = Phase.STREAMING
                await self._send({**message, "headers": _unbuffered(headers)})
            case "whole":
                self._phase = Phase.WITHHOLDING
                self._start, self._headers = message, headers

    async def _stream(self, message: Message) -> None:
        """A body message in, at most one out: none where the exchange holds all of it back."""
        body, last = body_of(message), is_last(message)
        try:
            out = await self._exchange.feed(body) if body else b""
            if last:
                self._phase = Phase.PASSING
                out += await self._exchange.close()
            if out or last or not body:  # an app sends an empty body to get its headers out
                await self._send({**message, "body": out})
        except Exception:
            self._can_tell = False
            raise

    async def _gather(self, message: Message) -> None:
        """A body message of a JSON answer; the last one sends the start and the new body."""
        body = await self._exchange.feed(body_of(message))
        if self._exchange.mode == "pass":  # longer than may be gathered: `body` is all of it so far
            await self._give_up({**message, "body": body})
        elif is_last(message):
            body += await self._exchange.close()
            self._phase = Phase.PASSING
            await self._send({**self._start, "headers": [*self._headers, (b"content-length", str(len(body)).encode())]})
            await self._send({**message, "body": body})

    async def _give_up(self, message: Message) -> None:
        """Send the start as it came after all, and from here on everything as it comes."""
        self._phase = Phase.PASSING
        await self._send(self._start)
        await self._send(message)


async def refuse(send: Send, refusal: Refused) -> None:
    """Answer a request that cannot be served, without the app."""
    body = refusal.body
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _unbuffered(headers: Headers) -> Headers:
    """The headers of a stream, with what keeps caches and proxies from holding it where the app did not say."""
    present = {name for name, _ in headers}
    return [*headers, *(header for header in _STREAM_HEADERS if header[0] not in present)]


_STREAM_HEADERS: Headers = [(b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
