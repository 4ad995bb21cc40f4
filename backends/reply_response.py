"""Sends a reply while its source writes it: server-sent events, or one JSON body."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Protocol, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamsieve.backends.openai_error import ApiError
from streamsieve.backends.reply import Piece, Reply, joined
from streamsieve.backends.reply_writer import DONE, ReplyWriter, sse
from streamsieve.wire import json_text

KEEP_ALIVE = 15.0
"""Seconds of silence in a stream after which a comment is sent, so that nothing on the way takes it for dead."""

_COMMENT = b": keep-alive\n\n"
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
_Item: TypeAlias = "tuple[int, Piece] | Exception"
"""A choice's index and its next piece, or what it failed with."""

logger = logging.getLogger(__name__)


class Observer(Protocol):
    """Who counts what becomes of replies."""

    def piece(self, piece: Piece) -> None:
        """One piece is on its way to the client."""

    def ended(self, outcome: str) -> None:
        """The reply is over, with this HTTP status, or `cancelled`."""


class Unobserved:
    """Counts nothing."""

    def piece(self, piece: Piece) -> None:
        """Nothing."""

    def ended(self, outcome: str) -> None:
        """Nothing."""


class ReplyResponse(Response):
    """An answer: `reply` in the shape of `writer`. When the client leaves, the choices are closed.

    The headers wait for the first piece, so what fails before that has its own status; what fails later is
    an event of the stream. `refusal` makes an `ApiError` of what a source raises, None for what it does
    not know, which is logged and answered with 500.
    """

    def __init__(
        self,
        reply: Reply,
        writer: ReplyWriter,
        *,
        stream: bool,
        include_usage: bool = False,
        refusal: Callable[[Exception], ApiError | None] = lambda error: None,
        observer: Observer | None = None,
        keep_alive: float = KEEP_ALIVE,
    ) -> None:
        self.background = None
        self._reply = reply
        self._writer = writer
        self._streams = stream
        self._include_usage = include_usage
        self._refusal = refusal
        self._observer = observer or Unobserved()
        self._keep_alive = keep_alive
        self._outcome = "cancelled"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request whose body has been read."""
        inbox, outbox = anyio.create_memory_object_stream[_Item](len(self._reply.choices))
        failure: Exception | None = None  # leaves as itself, not in the group that a task group makes of it
        try:
            async with outbox, anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
                with inbox:
                    for index, choice in enumerate(self._reply.choices):
                        tasks.start_soon(_pump, index, choice, inbox.clone())
                try:
                    if self._streams:
                        await self._stream(outbox, scope, receive, send)
                    else:
                        await self._whole(outbox, scope, receive, send)
                except Exception as error:
                    failure = error
                tasks.cancel_scope.cancel()
        finally:
            self._observer.ended(self._outcome)
        if failure is not None:
            raise failure

    async def _stream(self, items: AsyncIterator[_Item], scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        opened: set[int] = set()
        while True:
            item: _Item | None = None
            with anyio.move_on_after(self._keep_alive) as patience:
                item = await anext(items, None)
            if isinstance(item, Exception) and not started:
                await self._error(item).response()(scope, receive, send)
                return
            if not started:
                started = True
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            match item:
                case None if patience.cancelled_caught:
                    await _send_on(send, _COMMENT)
                case None:
                    self._outcome = "200"
                    if self._include_usage:
                        await _send_on(send, sse(self._writer.usage_chunk(self._reply.usage())))
                    break
                case Exception():
                    await _send_on(send, sse(self._error(item).body()))
                    break
                case index, piece:
                    await _send_on(send, self._written(index, piece, opened))
        await send({"type": "http.response.body", "body": DONE})

    def _written(self, index: int, piece: Piece, opened: set[int]) -> bytes:
        self._observer.piece(piece)
        out = b""
        if index not in opened:
            opened.add(index)
            opening = self._writer.opening(index)
            out = sse(opening) if opening is not None else b""
        return out + sse(self._writer.chunk(index, piece))

    async def _whole(self, items: AsyncIterator[_Item], scope: Scope, receive: Receive, send: Send) -> None:
        pieces: list[list[Piece]] = [[] for _ in self._reply.choices]
        async for item in items:
            if isinstance(item, Exception):
                await self._error(item).response()(scope, receive, send)
                return
            index, piece = item
            self._observer.piece(piece)
            pieces[index].append(piece)
        body = self._writer.whole(list(map(joined, pieces)), self._reply.usage())
        self._outcome = "200"
        await Response(json_text.encode(body), media_type="application/json")(scope, receive, send)

    def _error(self, failure: Exception) -> ApiError:
        error = failure if isinstance(failure, ApiError) else self._refusal(failure)
        if error is None:
            logger.error("a reply failed", exc_info=failure)
            error = ApiError(500, "The reply failed; the server's log says why.", "server_error", code="reply_failed")
        self._outcome = str(error.status)
        return error


async def _pump(index: int, choice: AsyncGenerator[Piece, None], inbox: MemoryObjectSendStream[_Item]) -> None:
    async with inbox:
        try:
            async for piece in choice:
                await inbox.send((index, piece))
        except Exception as error:
            await inbox.send(error)
        finally:
            with anyio.CancelScope(shield=True):
                await choice.aclose()


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.cancel()


async def _send_on(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
