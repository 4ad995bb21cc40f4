"""`wrap`: a client like the one given, whose completions come in three trays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.sdk_patch.family import belonging, family_of
from streamsieve.sdk_patch.transport import async_transport_round, transport_round
from streamsieve.wire.options import Options, settings_from
from streamsieve.wire.settings import Settings

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI, OpenAI

    HttpClient = httpx2.Client | httpx2.AsyncClient

Client = TypeVar("Client", bound="OpenAI | AsyncOpenAI")


def wrap(client: Client, *, settings: Settings | None = None, **options: Unpack[Options]) -> Client:
    """A client of the same class and options as `client`, which itself stays as it is.

    The keywords are the fields of `Settings`; `ConfigurationError` for what cannot work. The two share
    connections, proxies, cookies and being open: as with `client.with_options()`, closing either closes
    both. Works for `OpenAI`, `AsyncOpenAI` and what derives from them, of openai 3 and openai 2.
    """
    checked = settings_from(settings, options)
    http_client = getattr(client, "_client", None)
    if http_client is None or not hasattr(client, "with_options"):
        raise ConfigurationError(f"client: an OpenAI or AsyncOpenAI client, not {type(client).__qualname__}")
    with_options: Any = client.with_options  # the bound has two, each for its own kind of HTTP client
    return cast("Client", with_options(http_client=_sharing(http_client, checked)))


class SharedClient:
    """Mixed with the class of an HTTP client: a second view of it, with other transports.

    Everything but the transports is the original's, and so is being open or closed.
    """

    _original: HttpClient

    @property
    def _state(self) -> object:
        return self._original._state

    @_state.setter
    def _state(self, state: object) -> None:
        self._original._state = state  # type: ignore[assignment]

    def __del__(self) -> None:
        """Not the original's, which in the SDK closes the connections."""


def _sharing(original: HttpClient, settings: Settings) -> HttpClient:
    """The second view. It holds the original, whose finalizer in the SDK closes the connections."""
    family = family_of(original, "client")
    around: Any = async_transport_round if isinstance(original, family.AsyncClient) else transport_round
    shared: Any = object.__new__(belonging(SharedClient, type(original)))
    vars(shared).update(
        vars(original),
        _original=original,
        _transport=around(original._transport, settings),
        _mounts={
            pattern: inner if inner is None else around(inner, settings) for pattern, inner in original._mounts.items()
        },
    )
    return cast("HttpClient", shared)
