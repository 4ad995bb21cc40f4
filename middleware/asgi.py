"""ASGI 3 as types, and the few questions that the middleware has about its messages.

The specification types a scope and a message as dictionaries of anything. Here the values are objects,
and whoever reads one says what it must be.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import cast

Scope = MutableMapping[str, object]
Message = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

Headers = list[tuple[bytes, bytes]]


def headers_of(holder: Mapping[str, object]) -> Headers:
    """The headers of a scope or a message as a list, names in lower case.

    A message's headers may be any iterable, one that can be read only once too.
    """
    pairs = cast("Iterable[tuple[bytes, bytes]]", holder.get("headers") or ())
    return [(bytes(name).lower(), bytes(value)) for name, value in pairs]


def body_of(message: Message) -> bytes:
    """The bytes of a request or response body message; some apps send them as a `memoryview`."""
    return bytes(cast("bytes", message.get("body", b"")))


def is_last(message: Message) -> bool:
    """Whether a body message is the last of its body."""
    return not message.get("more_body", False)


def route_path(scope: Scope) -> str:
    """The path below `root_path`, which is where a mounted app stands."""
    path, root = str(scope.get("path", "")), str(scope.get("root_path", "")).rstrip("/")
    below = path[len(root) :]
    return below if path.startswith(root) and below.startswith("/") else path
