"""The transports for people who build their own `http_client`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack, cast, overload

from streamsieve.sdk_patch.transport import async_transport_round, transport_round
from streamsieve.wire.options import Options, settings_from
from streamsieve.wire.settings import Settings

if TYPE_CHECKING:
    import httpx  # type: ignore[import-not-found, unused-ignore]  # openai 3 does not bring it
    import httpx2


@overload
def SieveTransport(
    inner: httpx2.BaseTransport, *, settings: Settings | None = None, **options: Unpack[Options]
) -> httpx2.BaseTransport: ...
@overload
def SieveTransport(
    inner: httpx.BaseTransport, *, settings: Settings | None = None, **options: Unpack[Options]
) -> httpx.BaseTransport: ...
def SieveTransport(inner: object, *, settings: Settings | None = None, **options: Unpack[Options]) -> object:
    """A transport for `http_client=httpx2.Client(transport=…)`, or the same of httpx, round `inner`.

    The keywords are the fields of `Settings`. Closing it closes `inner`. A client that is given a
    transport ignores the proxy variables of the environment: give `proxy=` to the inner one.
    """
    return transport_round(cast("httpx2.BaseTransport", inner), settings_from(settings, options))


@overload
def AsyncSieveTransport(
    inner: httpx2.AsyncBaseTransport, *, settings: Settings | None = None, **options: Unpack[Options]
) -> httpx2.AsyncBaseTransport: ...
@overload
def AsyncSieveTransport(
    inner: httpx.AsyncBaseTransport, *, settings: Settings | None = None, **options: Unpack[Options]
) -> httpx.AsyncBaseTransport: ...
def AsyncSieveTransport(inner: object, *, settings: Settings | None = None, **options: Unpack[Options]) -> object:
    """`SieveTransport` for asynchronous clients."""
    return async_transport_round(cast("httpx2.AsyncBaseTransport", inner), settings_from(settings, options))
