"""A backend that breaks off before any of its answer is out: the client gets an error in OpenAI's shape."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamsieve.backends.openai_error import ApiError


class BrokenAnswerMiddleware:
    """Answers 502 where a `ConnectionError` leaves the application and nothing was sent yet.

    So it is with an answer that is not streamed, of which nothing goes out before all of it is there. A
    stream is on its way by then: the error goes on to the server, which closes the connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Every scope passes."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ConnectionError as error:
            if started:
                raise
            message = f"The upstream server broke off in the middle of its answer: {error}"
            await ApiError(502, message, "server_error", code="upstream_broke_off").response()(scope, receive, send)
