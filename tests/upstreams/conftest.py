"""The stand-ins, and the ways in which streamsieve stands before them, all in this process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from starlette.types import ASGIApp

from streamsieve import SieveMiddleware, wrap
from streamsieve.backends.application import application
from streamsieve.backends.upstream import Upstream
from streamsieve.wire.settings import Settings

_PACKAGE = Path(__file__).parent / "standins" / "__init__.py"


def _register() -> None:
    """pytest's importlib mode puts no folder of tests on sys.path."""
    spec = importlib.util.spec_from_file_location("streamsieve_standins", _PACKAGE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


_register()

WAYS = ("middleware", "proxy", "client")
Connect = Callable[[str, ASGIApp, Settings], openai.AsyncOpenAI]


@pytest.fixture(params=WAYS)
def way(request: Any) -> str:
    """How streamsieve stands between the client and the upstream."""
    return str(request.param)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """A client of an upstream, through streamsieve standing there in one of the ways."""
    async with AsyncExitStack() as stack:

        def client(app: ASGIApp) -> openai.AsyncOpenAI:
            http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app))
            stack.push_async_callback(http.aclose)
            return openai.AsyncOpenAI(base_url="http://m/v1", api_key="k", max_retries=0, http_client=http)

        def through(way: str, upstream: ASGIApp, settings: Settings) -> openai.AsyncOpenAI:
            match way:
                case "middleware":
                    return client(SieveMiddleware(upstream, settings=settings))
                case "proxy":
                    gateway = Upstream("http://u/v1", transport=httpx2.ASGITransport(app=upstream))
                    return client(application(gateway, settings))
                case _:
                    return wrap(client(upstream), settings=settings)

        yield through
