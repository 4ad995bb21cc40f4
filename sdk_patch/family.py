"""The HTTP library that an object comes from: httpx2 (openai 3) or httpx (openai 2).

The two have the same classes under the same names and cannot be mixed: a client asserts that a response
stream is of its own family. So the family is read off what is handed in, never off what could be
imported, and our classes are made a subclass of the family's. In annotations httpx2 stands for both.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from streamsieve.parsers.errors import ConfigurationError

if TYPE_CHECKING:
    import httpx2

FAMILIES = ("httpx2", "httpx")
Part = TypeVar("Part")


class Family(Protocol):
    """What is used of the module `httpx2` or `httpx`."""

    BaseTransport: type[httpx2.BaseTransport]
    AsyncBaseTransport: type[httpx2.AsyncBaseTransport]
    SyncByteStream: type[httpx2.SyncByteStream]
    AsyncByteStream: type[httpx2.AsyncByteStream]
    ByteStream: type[httpx2.ByteStream]
    Client: type[httpx2.Client]
    AsyncClient: type[httpx2.AsyncClient]
    Request: type[httpx2.Request]
    Response: type[httpx2.Response]
    RequestError: type[httpx2.RequestError]


def family_of(part: object, option: str) -> Family:
    """The module whose transport or client `part` is; that module is loaded, or `part` could not be.

    Raises `ConfigurationError`, naming `option`, for what comes from neither.
    """
    for name in FAMILIES:
        family = cast("Family | None", sys.modules.get(name))
        if family is not None and isinstance(
            part, family.BaseTransport | family.AsyncBaseTransport | family.Client | family.AsyncClient
        ):
            return family
    raise ConfigurationError(
        f"{option}: {type(part).__module__}.{type(part).__qualname__} is a transport or client of none of "
        f"the HTTP libraries that openai speaks through. Choices: {', '.join(FAMILIES)}"
    )


def belonging(part: type[Part], parent: type[object]) -> type[Part]:
    """`part` as a subclass of `parent` too, which is a class of a family; the same class each time."""
    if issubclass(parent, part):
        return parent
    made = _MADE.get((part, parent))
    if made is None:
        made = type(part.__name__, (part, parent), {"__module__": part.__module__, "__doc__": part.__doc__})
        _MADE[part, parent] = made
    return cast("type[Part]", made)


_MADE: dict[tuple[type[object], type[object]], type[object]] = {}
