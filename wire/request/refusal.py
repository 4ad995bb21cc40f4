"""A request that is answered without asking the upstream, in OpenAI's error shape."""

from __future__ import annotations

from dataclasses import dataclass

from streamsieve.wire import json_text


@dataclass(slots=True)
class Refused(Exception):
    """Raised while a request is prepared; the shell answers with `status` and `body`.

    `param`: the request's field that is wrong. `code`: OpenAI's, where it has one.
    """

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400
    type: str = "invalid_request_error"

    @property
    def body(self) -> bytes:
        """The JSON body (https://platform.openai.com/docs/guides/error-codes)."""
        fields = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return json_text.encode({"error": fields})
