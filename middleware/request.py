"""The request body: read once ahead of the app, given to it again, and then out of the way.

The kind of a request is in its body, and some apps never read it, so it is read before the app is
called: up to a limit, and never a message further than its end. `receive` belongs to the app, and from
there on every call of it goes to the server, so a disconnect arrives as if nobody stood between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from urllib.parse import quote

from streamsieve.middleware.asgi import Message, Receive, Scope, body_of, headers_of, is_last, route_path


class Replay:
    """The app's `receive`: the messages already read, then the server's own."""

    def __init__(self, messages: Iterable[Message], receive: Receive) -> None:
        self._messages = deque(messages)
        self._receive = receive

    async def __call__(self) -> Message:
        if self._messages:
            return self._messages.popleft()
        return await self._receive()


async def read_body(receive: Receive, limit: int) -> tuple[list[Message], bytes | None]:
    """The messages read, and the body that they make.

    The body is None where it is longer than `limit` bytes or the client left before its end; the
    messages are then what was read until that was known.
    """
    messages: list[Message] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        size += len(body_of(message))
        if message["type"] != "http.request" or size > limit:
            return messages, None
        if is_last(message):
            return messages, b"".join(map(body_of, messages))


def announced_length(scope: Scope) -> int:
    """The request's content-length in bytes; 0 where it is absent or no number."""
    length = dict(headers_of(scope)).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0


def narrowed(scope: Scope, body_length: int) -> Scope:
    """A copy of the scope, as the app behind a rewritten response should see it.

    Without `accept-encoding`, because only identity-coded text can be rewritten, and without the
    extensions by which a body leaves as anything but bytes. `body_length` corrects a content-length.
    """
    headers = [
        (name, str(body_length).encode() if name == b"content-length" else value)
        for name, value in headers_of(scope)
        if name != b"accept-encoding"
    ]
    given = scope.get("extensions")
    extensions = given if isinstance(given, dict) else {}
    kept = {name: value for name, value in extensions.items() if name not in BODY_EXTENSIONS}
    return {**scope, "headers": headers, "extensions": {**kept, PROMPT: {}}}


def moved(scope: Scope, path: str) -> Scope:
    """The entries of the scope that say where a request goes, for one that goes to `path` below `root_path`."""
    below = str(scope.get("path", "")).removesuffix(route_path(scope)) + path
    return {"path": below, "raw_path": quote(below).encode()}


def prompt_tail(scope: Scope) -> str | None:
    """What the app says that the prompt which it rendered ended in; None where it says nothing."""
    match scope["extensions"]:
        case {"streamsieve.prompt": {"tail": str(tail)}}:
            return tail
    return None


PROMPT = "streamsieve.prompt"
"""An extension of the scope: an app that renders the prompt puts what it ended in here, as `tail`."""
NARROWED = ("headers", "extensions", "path", "raw_path")
BODY_EXTENSIONS = ("http.response.pathsend", "http.response.zerocopysend")
