"""Mixed load on the local server for a while.

`python -m benchmarks.local_soak [--tokenizer DIR] [--minutes 30] [--json]`

A tiny random Qwen3 with the tokenizer in DIR, or that of the demo model, is served by `streamsieve serve` in a process
of its own, with little room (`--slots`, `--queue`), so that clients wait and are turned away. They ask for all that
there is, well and badly (`benchmarks.local_callers`), and a fifth of them leave at some time. Every answer has to be
whole and true to what was asked, or a clear error. Afterwards nothing may run, wait or fill the cache, and memory may
not have grown. What fails is reported, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import httpx2
import psutil
import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from benchmarks.local_callers import Caller, Tally
from benchmarks.local_http import Server, running
from benchmarks.memory import GROWTH, figures, growth
from streamsieve.backends.local.model.demo_model import fetch

SETTLED = 60.0
"""Seconds in which a server that was just started takes what it needs; memory is not judged by a shorter run."""

LONGEST = 512
"""Tokens of prompt and reply."""

APART = 0.05
"""Pairs of one seed that may differ: which rows share a batch changes the last bits of what a model computes."""

_IDLE = 30.0  # seconds after the last client in which nothing may run any more


def save(folder: Path, tokenizer: str) -> None:
    """A model of random weights that speaks the tokens of `tokenizer`."""
    tokens = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=-(-len(tokens) // 128) * 128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=LONGEST,
        initializer_range=0.1,
        eos_token_id=tokens.eos_token_id,
        pad_token_id=tokens.eos_token_id,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokens.save_pretrained(folder)


async def run(server: Server, seconds: float, clients: int, room: int) -> tuple[Tally, list[int]]:
    """All clients together; what came of it, and the server's memory second by second."""
    tally, memory = Tally(), list[int]()
    # Given up before the server does so, which would meet a request on its way.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=50, keepalive_expiry=2)
    async with httpx2.AsyncClient(base_url=server.url, timeout=None, limits=limits) as client:
        watch = asyncio.create_task(_watch(server, memory))
        until = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                caller = Caller(client, random.Random(number), tally, room, LONGEST)
                group.create_task(caller.run(until))
        watch.cancel()
        tally.faults += await _left(client)
    return tally, memory


async def _watch(server: Server, memory: list[int]) -> None:
    process = psutil.Process(server.process.pid)
    while True:
        memory.append(process.memory_info().rss)
        await asyncio.sleep(1)


async def _left(client: httpx2.AsyncClient) -> list[str]:
    """What is left when nobody asks for anything any more, and whether the server still answers."""
    end = time.monotonic() + _IDLE
    while any((gauges := await _gauges(client)).values()) and time.monotonic() < end:
        await asyncio.sleep(0.2)
    found = [f"{name} is {value:g} when all clients have gone" for name, value in gauges.items() if value]
    last = await client.post("/v1/completions", json={"prompt": "Hi", "max_tokens": 2})
    return found + ([] if last.status_code == 200 else [f"the last request got {last.status_code}: {last.text}"])


async def _gauges(client: httpx2.AsyncClient) -> dict[str, float]:
    """The numbers of `/metrics` that have to be zero when the server is idle."""
    lines = (await client.get("/metrics")).text.splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    names = ("queued_replies", "running_replies", "cache_filled_tokens", "engine_failures_total")
    return {name: float(told[f"streamsieve_{name}"]) for name in names}


def report(tally: Tally, memory: list[int], seconds: float) -> Mapping[str, object]:
    """The figures; memory that grew, and pairs that differ, are added to the faults."""
    if seconds > SETTLED and growth(memory) > GROWTH:
        tally.faults.append(f"the server's memory grew to {growth(memory):.2f} times as much")
    if tally.apart > max(1, APART * tally.pairs):
        tally.faults.append(f"{tally.apart} of {tally.pairs} pairs of one seed differ")
    return {
        "asked": dict(tally.asked),
        "answers": dict(tally.statuses),
        "tokens_per_second": round(tally.tokens / seconds, 1),
        "true_to_their_schema": tally.bound,
        "pairs_of_a_seed": tally.pairs,
        "pairs_that_differ": tally.apart,
        "slowest_seconds": round(tally.slowest, 2),
        **figures(memory),
        "faults": len(tally.faults),
        "first_faults": tally.faults[:5],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_soak", description=__doc__)
    parser.add_argument("--tokenizer", help="a folder with one that has a chat template (default: the demo model's)")
    parser.add_argument("--minutes", type=float, default=30, help="clients ask for so long (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=12, help="at once (default: %(default)s)")
    parser.add_argument("--slots", type=int, default=4, help="replies that run at once (default: %(default)s)")
    parser.add_argument("--queue", type=int, default=16, help="replies that may wait (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    options = parser.parse_args()
    seconds = 60 * options.minutes
    room = options.slots + options.queue
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder), options.tokenizer or str(fetch()))
        command = [str(Path(sys.executable).parent / "streamsieve"), "serve", "--model", folder, "--device", "cpu"]
        command += ["--reasoning-parser", "qwen3", "--tool-parser", "hermes", "--allow-misfit"]
        command += ["--slots", str(options.slots), "--queue", str(options.queue), "--port"]
        with running("streamsieve", command, "", 1) as server:
            tally, memory = asyncio.run(run(server, seconds, options.clients, room))
    told = report(tally, memory, seconds)
    if options.json:
        print(json.dumps(told, ensure_ascii=False))
    else:
        for name, value in told.items():
            print(f"{name:24} {value}")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
