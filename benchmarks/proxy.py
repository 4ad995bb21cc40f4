"""What the proxy costs against a bare one: `python -m benchmarks.proxy [--json]`.

A loopback upstream streams to the client through our proxy, and through the least one that httpx2 and Starlette
make, in turns; all four are processes of their own. The bar: a chunk takes ours at most 1.5 times as
long. `cpu_us` is the processor time of the proxy for one chunk where chunks come one by one, as an engine
sends them; `wall_us` and `flood_cpu_us` are those of one reply that the upstream writes as fast as it can,
so that a read brings several chunks. The least of the rounds counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from contextlib import ExitStack

from benchmarks.servers import Served, events, reply, request, serving

ROUNDS = 5
STREAMS = 8
"""At once, where chunks come one by one."""

DELAY = 0.01
"""Seconds between two chunks of one stream."""

PACED, FLOOD = 900, 60_000
"""Characters of a reply."""


async def stream(port: int, length: int, delay: float) -> bytes:
    """The response to one request, head and all."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request({"length": length, "delay": delay}))
    response = await reader.read()
    writer.close()
    if b"[DONE]" not in response:
        raise RuntimeError(f"the reply broke off: {response[-300:]!r}")
    return response


async def paced(server: Served) -> float:
    """Seconds of processor time a chunk, where chunks come one by one."""
    before = server.usage().cpu
    await asyncio.gather(*[stream(server.port, PACED, DELAY) for _ in range(STREAMS)])
    after = server.usage().cpu
    return (after - before) / STREAMS / len(events(reply(PACED)))


async def flood(server: Served) -> tuple[float, float]:
    """Seconds a chunk, and of processor time, where the upstream writes as fast as it can."""
    chunks = len(events(reply(FLOOD)))
    before = server.usage().cpu
    start = time.perf_counter()
    await stream(server.port, FLOOD, 0)
    wall = time.perf_counter() - start
    after = server.usage().cpu
    return wall / chunks, (after - before) / chunks


def measure(rounds: int) -> dict[str, float]:
    least: dict[str, float] = {}

    def note(name: str, seconds: float) -> None:
        least[name] = min(seconds, least.get(name, seconds))

    with ExitStack() as servers:
        upstream = servers.enter_context(serving("upstream"))
        proxies = {name: servers.enter_context(serving(name, upstream.url)) for name in ("bare", "sieve")}
        for name, server in proxies.items():
            response = asyncio.run(stream(server.port, PACED, 0))
            if (b'"reasoning":' in response) != (name == "sieve"):
                raise RuntimeError(f"{name} does not do what it is measured for")
        for _ in range(rounds):
            for name, server in proxies.items():
                note(f"cpu_us_{name}", asyncio.run(paced(server)) * 1e6)
                wall, cpu = asyncio.run(flood(server))
                note(f"wall_us_{name}", wall * 1e6)
                note(f"flood_cpu_us_{name}", cpu * 1e6)
    for figure in ("cpu", "wall", "flood_cpu"):
        least[f"{figure}_ratio"] = least[f"{figure}_us_sieve"] / least[f"{figure}_us_bare"]
    return least


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    figures = {name: round(value, 3) for name, value in measure(options.rounds).items()}
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:24} {value:8.3f}")


if __name__ == "__main__":
    main()
