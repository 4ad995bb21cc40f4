"""A local model, or any application of this room, as replicas of Ray Serve: on one machine or on a cluster.

    serve run streamsieve.backends.ray_serve:build model=/models/Qwen3-8B tool_parser=hermes reasoning_parser=qwen3

An application is whole in each replica, so nothing is shared between them, and Ray's proxy chooses for each request.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

import httpx2
from starlette.types import ASGIApp

from streamsieve.backends.application import application
from streamsieve.backends.ray_options import RayOptions

try:
    from ray import serve
except ModuleNotFoundError as error:
    message = "Ray Serve is not installed: pip install 'streamsieve[ray,serve,local]'"
    raise ModuleNotFoundError(message, name=error.name) from error

NAME = "streamsieve"
"""Of the deployment, for Ray's own configuration files."""

CHECK_SECONDS = 2.0
"""Between two looks at a replica's health. Ray replaces it after three bad ones, and until then sends it requests."""

_LOADING_POLL_SECONDS = 0.1


class Replica:
    """One process that serves the application. Ray runs the application's lifespan: it drains when Ray stops it."""

    app: ASGIApp
    """Set by `serve.ingress`."""

    async def check_health(self) -> None:
        """Raise RuntimeError where the application's `/health` says that it is not well: Ray then replaces the replica.

        While it loads, wait: a replica gets no requests before its first check has passed.
        """
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url="http://replica") as client:
            while _is_loading(answer := await client.get("/health")):
                await asyncio.sleep(_LOADING_POLL_SECONDS)
        if not answer.is_success:
            raise RuntimeError(f"/health answers {answer.status_code}: {answer.text}")


def deployment(make: Callable[[], ASGIApp]) -> serve.Deployment:
    """A deployment of what `make` returns, which is called once in each replica.

    The application needs a lifespan, and a `/health` that answers 200 where it can serve. What it loads in `make` is
    loaded before the replica is ready, and what `make` raises is what Ray shows. `Deployment.options` says how
    many replicas there are and what they run on.
    """

    def made() -> ASGIApp:  # Ray takes plain functions only
        return make()

    return serve.deployment(serve.ingress(made)(Replica)).options(name=NAME, health_check_period_s=CHECK_SECONDS)


def build(arguments: Mapping[str, object]) -> serve.Application:
    """A local model as an application of Ray's; `arguments` are those of `RayOptions.read`.

    The model has to be under the same path on each node, and where this runs. Raises ConfigurationError.
    """
    options = RayOptions.read(arguments)
    options.settings()  # so that what cannot work is told here, not by a replica
    return deployment(lambda: _with_model(options)).options(**options.deployment()).bind()


def _with_model(options: RayOptions) -> ASGIApp:
    """What `streamsieve serve --model` serves, with the model loaded."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before transformers is imported
    from streamsieve.backends.local.server.application import LocalBackend
    from streamsieve.backends.local.server.runtime import Runtime

    settings = options.settings()
    runtime = Runtime.load(options.model, settings)
    return application(LocalBackend(lambda progress: runtime), settings, api_key=options.api_key)


def _is_loading(answer: httpx2.Response) -> bool:
    """As `LocalBackend` tells it."""
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    return answer.status_code == 503 and is_json and answer.json().get("status") == "loading"
