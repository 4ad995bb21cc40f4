"""Errors as OpenAI's API words them: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from streamsieve.wire.request.refusal import Refused


@dataclass(eq=False)
class ApiError(Exception):
    """An error for the client, with the HTTP status it is sent under."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent beside it, `Retry-After` for instance."""

    def body(self) -> dict[str, object]:
        """The JSON body; also what stands in a `data:` line when a stream fails on its way."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """The answer to send; it is an ASGI application."""
        return JSONResponse(self.body(), self.status, {**self.headers, **(headers or {})})


def bad_request(message: str, param: str | None = None) -> ApiError:
    """400: the request is at fault; `param` names the field."""
    return ApiError(400, message, param=param)


Handler = Callable[[Request, Exception], Awaitable[Response]]


def error_handlers() -> dict[int | type[Exception], Handler]:
    """For a Starlette application: what is raised to refuse a request, and requests that no route answers."""
    return {ApiError: _answer_error, Refused: _answer_refusal, 404: _no_route, 405: _no_route}


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error.response()


async def _answer_refusal(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refused)
    return Response(refusal.body, refusal.status, media_type="application/json")


async def _no_route(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    message = f"There is no {request.method} {request.url.path} here."
    return ApiError(status, message, code="unknown_url").response(getattr(error, "headers", None))
