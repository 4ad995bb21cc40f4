"""Any engine in this process as a backend: an async function that yields the text of a reply is enough.

async def generate(chat):
    async for text, token_ids in my_engine(chat.messages, **chat.body.get("chat_template_kwargs", {})):
        yield text, token_ids

app = SieveMiddleware(callable_source(generate, model="my-model"), tool_parser="hermes")
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from streamsieve.backends.openai_error import error_handlers
from streamsieve.backends.prompt_tail import tell_prompt_tail
from streamsieve.backends.reply import Piece, Reply, Usage
from streamsieve.backends.reply_response import ReplyResponse
from streamsieve.backends.reply_writer import ChatWriter
from streamsieve.backends.request_fields import (
    Body,
    read_body,
    read_boolean,
    read_choices,
    read_include_usage,
    read_messages,
)

Yielded: TypeAlias = "str | tuple[str, Sequence[int]] | Piece | Usage"
"""Text; text with its token ids; a `Piece`, to say how the reply ended; or what it cost."""

Generate: TypeAlias = "Callable[[Chat], AsyncIterator[Yielded]]"


@dataclass(frozen=True, slots=True)
class Chat:
    """One reply to write: the request as the client sent it, and which of its `n` choices this is."""

    body: Body
    messages: Sequence[Mapping[str, object]]
    index: int
    _scope: Scope = field(repr=False)

    def prompt_ended_in(self, tail: str) -> None:
        """Say what the rendered prompt ended in, so that the middleware knows whether it opened or closed the
        thinking; before the first text."""
        tell_prompt_tail(self._scope, tail)


def callable_source(generate: Generate, *, model: str) -> Starlette:
    """The application: `/v1/chat/completions`, `/v1/models` and `/health`.

    `generate` is called once for each choice and yields raw text, as the model wrote it, markers and all. A reply
    that ends without a `Piece` that has a finish reason ends with `stop`. `ApiError` raised before the first text
    becomes the answer; anything else is logged and answered with 500. When the client leaves, the iterator is
    cancelled where it waits, and closed.
    """
    source = _Source(generate, model)
    return Starlette(
        routes=[
            Route("/health", _health),
            Route("/v1/models", source.models),
            Route("/v1/chat/completions", source.complete, methods=["POST"]),
        ],
        exception_handlers=error_handlers(),
    )


class _Source:
    def __init__(self, generate: Generate, model: str) -> None:
        self._generate = generate
        self._model = model
        self._card = {"id": model, "object": "model", "created": int(time.time()), "owned_by": "streamsieve"}

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._card]})

    async def complete(self, request: Request) -> Response:
        body = await read_body(request)
        messages = read_messages(body)
        stream = read_boolean(body, "stream")
        costs: list[Usage] = []
        choices = [
            _pieces(self._generate(Chat(body, messages, index, request.scope)), costs)
            for index in range(read_choices(body))
        ]
        reply = Reply(choices, lambda: _total(costs))
        include_usage = read_include_usage(body, stream)
        return ReplyResponse(reply, ChatWriter(self._model), stream=stream, include_usage=include_usage)


async def _pieces(yielded: AsyncIterator[Yielded], costs: list[Usage]) -> AsyncGenerator[Piece, None]:
    """What `generate` yields as pieces, the last with a finish reason."""
    finished = False
    try:
        async for what in yielded:
            match what:
                case Usage():
                    costs.append(what)
                    continue
                case Piece():
                    piece = what
                case str():
                    piece = Piece(text=what)
                case (text, token_ids):
                    piece = Piece(text=text, token_ids=token_ids)
            finished = finished or piece.finish_reason is not None
            yield piece
    finally:
        if isinstance(yielded, AsyncGenerator):
            await yielded.aclose()
    if not finished:
        yield Piece(finish_reason="stop")


def _total(costs: Sequence[Usage]) -> Usage | None:
    """The usage of all choices; the prompt counts once."""
    if not costs:
        return None
    cached = [cost.cached for cost in costs if cost.cached is not None]
    return Usage(
        prompt=costs[0].prompt,
        completion=sum(cost.completion for cost in costs),
        cached=max(cached, default=None),
    )


async def _health(request: Request) -> Response:
    return Response(status_code=200)
