"""Our server beside `transformers serve`, same weights, over HTTP: `python -m benchmarks.local_http --tokenizer DIR`.

A random Qwen3 (that of `benchmarks.local`) with the tokenizer in DIR is served three times on this machine's CPU: by
`streamsieve serve`, by `transformers serve`, and by that with `--continuous-batching`. 24 chats of mixed lengths go to
each at once, streamed. `*_rate`: tokens a second; `*_cpu_rate`: of the server's processor time, which other programs
on the machine do not change; `*_first`: median seconds to the first text. The sides take turns, the others stopped
meanwhile, and the best round of each counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil
from transformers import AutoTokenizer

from benchmarks.local import toy

_START = 300.0  # seconds that a server may take to load
_WORDS = ["tide", "boat", "harbour", "morning", "lantern", "north", "quiet", "seven", "rope", "chart", "bell", "wind"]


@dataclass(frozen=True, slots=True)
class Chat:
    """What is asked, and how many tokens shall come."""

    text: str
    new: int


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs: its process is stopped while others are measured."""

    name: str
    url: str
    model: str
    process: subprocess.Popen[bytes]

    @property
    def processor_seconds(self) -> float:
        """What it has taken so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Let it run for a while."""
        self.process.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGSTOP)


def chats(round: int, count: int = 24) -> list[Chat]:
    """As long in every round, in other words."""
    lengths, words = random.Random(7), random.Random(round)
    return [
        Chat(" ".join(words.choices(_WORDS, k=lengths.randint(10, 90))), lengths.randint(4, 64)) for _ in range(count)
    ]


def save(folder: Path, tokenizer: str) -> None:
    """The model's files, as both servers read them."""
    model = toy("cpu", "float32").model
    tokens = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    model.generation_config.eos_token_id = model.config.eos_token_id = tokens.eos_token_id
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)


def commands(folder: Path) -> dict[str, list[str]]:
    """How each side is started, but for the port. A paged cache takes most of the memory unless it is told not to; a
    tenth holds thousands of these chats."""
    python = str(Path(sys.executable).parent)
    theirs = [f"{python}/transformers", "serve", str(folder), "--device", "cpu", "--port"]
    return {
        "streamsieve": [f"{python}/streamsieve", "serve", "--model", str(folder), "--device", "cpu", "--port"],
        "transformers": theirs,
        "continuous": [*theirs[:-1], "--continuous-batching", "--cb-max-memory-percent", "0.1", "--port"],
    }


def _model_name(side: str, folder: str) -> str:
    """What a request calls the model."""
    return Path(folder).name if side == "streamsieve" else folder


@contextmanager
def running(name: str, command: Sequence[str], model: str, threads: int | None = None) -> Iterator[Server]:
    """Start a server, and stop it in the end; where something fails meanwhile, show what it logged."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*command, str(port)], env=environment, stdout=log, stderr=log)
        server = Server(name, f"http://127.0.0.1:{port}", model, process)
        try:
            _wait(server)
            yield server
        except BaseException:
            log.seek(0)
            print(log.read().decode(errors="replace")[-3000:], file=sys.stderr)
            raise
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def serving(name: str, command: Sequence[str], model: str, threads: int | None) -> Iterator[Server]:
    """A server that is warmed with one chat, and sleeps until it is measured."""
    with running(name, command, model, threads) as server:
        asyncio.run(_load(server, chats(-1, 1)))
        server.process.send_signal(signal.SIGSTOP)
        yield server


def _wait(server: Server) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end and server.process.poll() is None:
        try:
            if httpx2.get(f"{server.url}/health", timeout=5).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.5)
    raise RuntimeError(f"{server.name} does not start")


async def _load(server: Server, load: Sequence[Chat]) -> list[float]:
    """Send `load` at once; the seconds until each had its first text."""
    async with httpx2.AsyncClient(base_url=server.url, timeout=600) as client:
        return await asyncio.gather(*(_chat(client, server.model, chat) for chat in load))


async def _chat(client: httpx2.AsyncClient, model: str, chat: Chat) -> float:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": chat.text}],
        "max_tokens": chat.new,
        "temperature": 0,
        "stream": True,
    }
    start, first, finish = time.perf_counter(), 0.0, None
    async with client.stream("POST", "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line[6:]).get("choices", ()):
                if choice["delta"].get("content") and not first:
                    first = time.perf_counter() - start
                finish = choice.get("finish_reason") or finish
    assert finish == "length", finish
    return first or time.perf_counter() - start


def measure(servers: Sequence[Server], rounds: int) -> dict[str, float]:
    """Rates, times to the first text, and ratios."""
    rates: dict[str, float] = {}
    firsts: dict[str, float] = {}
    cpus: dict[str, float] = {}
    for round in range(rounds):
        for server in servers:
            load = chats(round)
            with server.awake():
                start, start_cpu = time.perf_counter(), server.processor_seconds
                first = statistics.median(asyncio.run(_load(server, load)))
                seconds, cpu = time.perf_counter() - start, server.processor_seconds - start_cpu
            tokens = sum(chat.new for chat in load)
            rate = tokens / seconds
            cpus[server.name] = max(tokens / cpu, cpus.get(server.name, 0.0))
            print(
                f"round {round} {server.name:13} {rate:7.1f} tokens/s, {tokens / cpu:7.1f} of processor time; "
                f"first after {first:7.3f} s",
                file=sys.stderr,
            )
            rates[server.name] = max(rate, rates.get(server.name, 0.0))
            firsts[server.name] = min(first, firsts.get(server.name, float("inf")))
    return _figures(rates, firsts, cpus)


def _figures(rates: Mapping[str, float], firsts: Mapping[str, float], cpus: Mapping[str, float]) -> dict[str, float]:
    figures = {f"{name}_rate": rate for name, rate in rates.items()}
    figures |= {f"{name}_cpu_rate": rate for name, rate in cpus.items()}
    figures |= {f"{name}_first": seconds for name, seconds in firsts.items()}
    for other in ("transformers", "continuous"):
        if other in rates:
            figures[f"rate_ratio_to_{other}"] = rates["streamsieve"] / rates[other]
            figures[f"cpu_rate_ratio_to_{other}"] = cpus["streamsieve"] / cpus[other]
            figures[f"first_ratio_to_{other}"] = firsts["streamsieve"] / firsts[other]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_http", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of each side's arithmetic; else as it chooses itself")
    parser.add_argument("--tokenizer", required=True, help="a folder with Qwen3's tokenizer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        save(Path(folder), options.tokenizer)
        servers = [
            stack.enter_context(serving(name, command, _model_name(name, folder), options.threads))
            for name, command in commands(Path(folder)).items()
        ]
        figures = {name: round(value, 3) for name, value in measure(servers, options.rounds).items()}
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:28} {value:8.3f}")


if __name__ == "__main__":
    main()
