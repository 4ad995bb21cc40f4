"""Errors as OpenAI's API words them: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import JSONResponse


@dataclass(eq=False)
class ApiError(Exception):
    """An error for the client, with the HTTP status it is sent under."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None

    def body(self) -> dict[str, object]:
        """The JSON body; also what stands in a `data:` line when a stream fails on its way."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """The answer to send; it is an ASGI application."""
        return JSONResponse(self.body(), self.status, headers)


def bad_request(message: str, param: str | None = None) -> ApiError:
    """400: the request is at fault; `param` names the field."""
    return ApiError(400, message, param=param)
