"""Many streams at once through the proxy, for a while.

`python -m benchmarks.soak [--seconds 60] [--streams 500] [--json]`

Proxy and upstream are processes of their own, on loopback. Every stream has a text of its own, and what its
client read is compared with it: nothing may be lost, nothing come twice, nothing of another stream be in it.
A tenth of the clients leave on the way, and must have had the beginning of the reply; for a tenth the upstream dies,
and they must have had what the chunks until then make, and an error event. Afterwards nothing may be open any more,
and the proxy's memory may not have grown. Each of these failing is reported, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.heard import Kind, faults
from benchmarks.memory import GROWTH, figures, growth
from benchmarks.servers import Served, events, reply, request, serving

LENGTHS = (100, 600)
"""Characters of a reply, from and to."""

KINDS: dict[Kind, int] = {"whole": 8, "client leaves": 1, "upstream dies": 1}
"""How often each comes up."""


@dataclass
class Soak:
    """What came of it; `delay`: seconds between two chunks of a stream."""

    delay: float
    streams: Counter[Kind] = field(default_factory=Counter)
    chunks: int = 0
    memory: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0
    """Seconds by which a whole stream was later than its chunks' delays add up to, at most."""


async def _client(number: int, port: int, until: float, soak: Soak) -> None:
    """One stream after the other, each text with a mark that no other has."""
    chance = random.Random(number)
    await asyncio.sleep(chance.uniform(0, soak.delay))
    turn = 0
    while time.monotonic() < until:
        turn += 1
        (kind,) = chance.choices([*KINDS], [*KINDS.values()])
        mark = f"№ {number}.{turn} 🌊 Bodø"
        length = chance.randint(*LENGTHS)
        message = reply(length, mark)
        chunks = len(events(message))
        bench = {"length": length, "mark": mark, "delay": soak.delay}
        start = time.monotonic()
        response = await _response(port, bench, kind, chunks, chance)
        soak.streams[kind] += 1
        soak.chunks += response.count(b"\n\n")
        soak.faults += (f"stream {mark}, {kind}: {fault}" for fault in faults(kind, message, response))
        if kind == "whole":
            soak.slowest = max(soak.slowest, time.monotonic() - start - chunks * soak.delay)


async def _response(port: int, bench: dict[str, object], kind: Kind, chunks: int, chance: random.Random) -> bytes:
    if kind == "upstream dies":
        bench["die_after"] = chance.randrange(1, chunks)
    most = chance.randrange(200 * chunks) if kind == "client leaves" else sys.maxsize
    response = b""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request(bench))
        while len(response) < most and (data := await reader.read(min(most - len(response), 65536))):
            response += data
    finally:
        writer.close()
    return response


async def _watch(proxy: Served, soak: Soak) -> None:
    while True:
        await asyncio.sleep(1)
        soak.memory.append((await asyncio.to_thread(proxy.usage)).memory)


async def run(seconds: float, streams: int, delay: float, proxy: Served) -> Soak:
    soak = Soak(delay)
    until = time.monotonic() + seconds
    watch = asyncio.create_task(_watch(proxy, soak))
    async with asyncio.TaskGroup() as clients:
        for number in range(streams):
            clients.create_task(_client(number, proxy.port, until, soak))
    watch.cancel()
    return soak


def report(soak: Soak, servers: dict[str, Served]) -> dict[str, object]:
    """The figures; what is left open and grown memory are added to the faults."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(server.usage().open for server in servers.values()):
        time.sleep(0.1)
    for name, server in servers.items():
        if left := server.usage().open:
            soak.faults.append(f"{name}: {left} requests are open five seconds after the last client has gone")
    if growth(soak.memory) > GROWTH:
        soak.faults.append(f"the proxy's memory grew to {growth(soak.memory):.2f} times as much")
    return {
        "streams": dict(soak.streams),
        "chunks": soak.chunks,
        "proxy_cpu_us_per_chunk": round(servers["proxy"].usage().cpu / soak.chunks * 1e6, 1),
        "slowest_stream_late_by_seconds": round(soak.slowest, 2),
        **figures(soak.memory),
        "faults": len(soak.faults),
        "first_faults": soak.faults[:5],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="streams begin for so long (default: %(default)s)")
    parser.add_argument("--streams", type=int, default=500, help="at once (default: %(default)s)")
    parser.add_argument("--delay", type=float, default=0.2, help="seconds between two chunks (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    options = parser.parse_args()
    if options.seconds < 4 or options.streams < 1:
        parser.error("at least 4 seconds and 1 stream")
    with serving("upstream") as upstream, serving("sieve", upstream.url) as proxy:
        soak = asyncio.run(run(options.seconds, options.streams, options.delay, proxy))
        told = report(soak, {"proxy": proxy, "upstream": upstream})
    if options.json:
        print(json.dumps(told))
    else:
        for name, value in told.items():
            print(f"{name:32} {value}")
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
