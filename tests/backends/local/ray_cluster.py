"""A Ray cluster of this machine alone, for test_ray_serve.py; runs in an environment that has Ray.

ray_cluster.py PORT FOLDER MODEL serves three applications and prints a line when they are ready: `/`, two replicas;
`/brief`, one, which `delete` on standard input ends; `/model`, the model in the folder MODEL. Replicas and tests talk
through files in FOLDER, which are named for what they say, and of which process.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import ray
from ray import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from streamsieve.backends.application import application
from streamsieve.backends.callable_source import Chat, callable_source
from streamsieve.backends.ray_serve import build, deployment
from streamsieve.wire.settings import Settings

KEY = "sesame"
HALF_A_CALL = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Bo'
REST_OF_IT = 'dø"}}\n</tool_call>'


def writing(folder: Path) -> Callable[[Chat], AsyncIterator[str]]:
    """Thinks of its process, and calls a tool: one half at once, the other when the request's file is there."""

    async def generate(chat: Chat) -> AsyncIterator[str]:
        name = str(chat.messages[-1]["content"])
        (folder / f"{name}-begun").touch()
        yield f"<think>{os.getpid()}</think>"
        yield HALF_A_CALL
        while not (folder / name).exists():
            await asyncio.sleep(0.05)
        yield REST_OF_IT

    return generate


def making(folder: Path) -> Callable[[], ASGIApp]:
    """The application: loads for half a second, and is well until the file that says otherwise."""

    def make() -> ASGIApp:
        process = os.getpid()
        loads = iter([True] * 5)

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            (folder / f"opened-{process}").touch()
            yield
            (folder / f"closed-{process}").touch()

        async def health(request: Request) -> Response:
            if next(loads, False):
                return JSONResponse({"status": "loading"}, status_code=503)
            (folder / f"loaded-{process}").touch()
            return Response(status_code=503 if (folder / f"dead-{process}").exists() else 200)

        source = callable_source(writing(folder), model="paced")
        backend = Starlette(routes=[Route("/health", health), Mount("/", source)], lifespan=lifespan)
        return application(backend, Settings(reasoning_parser="qwen3", tool_parser="hermes"), api_key=KEY)

    return make


def main(port: int, folder: Path, model: str) -> None:
    ray.init(
        num_cpus=2,
        object_store_memory=100 * 2**20,
        include_dashboard=False,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    made = deployment(making(folder)).options(ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=1)
    arguments = {"model": model, "device": "cpu", "slots": "2", "num_cpus": "0.5", "tool_parser": "hermes"}
    targets = {
        "/": made.options(num_replicas=2, health_check_period_s=0.5).bind(),
        "/brief": made.bind(),
        "/model": build({**arguments, "api_key": KEY}),
    }
    serve.run_many([serve.RunTarget(target, name=path, route_prefix=path) for path, target in targets.items()])
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "delete\n":
            serve.delete("/brief")
            print("deleted", flush=True)
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
