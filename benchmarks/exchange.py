"""What a chat chunk costs in a whole exchange, bytes in to bytes out: `python -m benchmarks.exchange [--json]`.

One chunk of a few characters is fed at a time. `us_per_chunk` is the common case; `us_per_chunk_logprobs`
has log probabilities in every chunk, so that none is like another; `us_per_chunk_n4` has four choices, whose
chunks come in turn; `us_per_chunk_responses` makes a response of chat chunks, `us_per_chunk_upstream_responses`
sorts one that the upstream made; `growth` is the worst ratio of the times for a reply and one half as long, from
100 kB to 3.2 MB. The bars: 3.5 times the floor for the common case, 4 times with four choices, 5 for responses.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from benchmarks.floor import DELTA_LENGTH, best_in_turns, chunk, floor
from streamsieve.parsers.chain import run
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message, ToolCall
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.settings import Settings

ROUNDS = 40
LENGTH = 30_000
"""Characters of the reply: it takes about as long as the floor's loop, so that noise finds both alike."""

CHOICES = 4
SIZES = [100_000 * 2**doubling for doubling in range(6)]
_BLOCK = 5_000  # chunks made at a time, so that a long reply's chunks do not fill the memory

_REQUEST: dict[str, Any] = {
    "model": "Qwen/Qwen3-8B",
    "stream": True,
    "messages": [{"role": "user", "content": "Write it down."}],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "post_note",
                "parameters": {"type": "object", "properties": {"body": {"type": "string"}}},
            },
        }
    ],
}

_REQUESTS = {
    "/chat/completions": _REQUEST,
    "/responses": {
        "model": "Qwen/Qwen3-8B",
        "stream": True,
        "input": "Write it down.",
        "tools": [{"type": "function", **tool["function"]} for tool in _REQUEST["tools"]],
    },
}


def reply(format: Format, size: int) -> str:
    """About `size` characters: a tenth thinking, a tenth answer, the rest one string argument of a call."""
    prose = "The tide at Brest turns a little after nine, so the boat leaves early. "
    tenth = prose * (size // 10 // len(prose)) + "Done."
    call = ToolCall("call-1", "post_note", json.dumps({"body": tenth * 8}))
    return format.render(Message(tenth, tenth, [call]), Request.from_body(_REQUEST))


def event(text: str) -> bytes:
    return b"data: %b\n\n" % chunk({"content": text})


def event_with_logprobs(text: str) -> bytes:
    data = orjson.loads(chunk({"content": text}))
    entry = {"token": text, "logprob": -0.31326162815093994, "bytes": list(text.encode()), "top_logprobs": []}
    data["choices"][0]["logprobs"] = {"content": [entry]}
    return b"data: %b\n\n" % orjson.dumps(data)


_numbers = itertools.count()


def response_event(text: str) -> bytes:
    """A text delta as vLLM sends it by the Responses API."""
    body = {
        "content_index": 0,
        "delta": text,
        "item_id": "msg_85e3cbed95a04712a6c4dffe61ebeff4",
        "logprobs": [],
        "output_index": 0,
        "sequence_number": next(_numbers),
        "type": "response.output_text.delta",
    }
    return b"event: response.output_text.delta\ndata: %b\n\n" % orjson.dumps(body)


def of_choice(event: bytes, index: int) -> bytes:
    """The same event for another choice."""
    return event.replace(b'"index":0', b'"index":%d' % index, 1)


def exchange(
    settings: Settings,
    text: str,
    event: Callable[[str], bytes],
    choices: int = 1,
    path: str = "/chat/completions",
) -> float:
    """Seconds a chunk of one exchange; the choices all have this text, and a delta in turn."""
    return run(_exchange(settings, text, event, choices, path))


async def _exchange(settings: Settings, text: str, event: Callable[[str], bytes], choices: int, path: str) -> float:
    subject = Exchange(settings, orjson.dumps(_REQUESTS[path]), path=path)
    subject.start(200, [(b"content-type", b"text/event-stream")])
    opening = b"data: %b\n\n" % chunk({"role": "assistant", "content": ""})
    for index in range(choices):
        await subject.feed(of_choice(opening, index))
    seconds, chunks = 0.0, 0
    for block in _blocks(text, event, choices):
        start = time.perf_counter()
        for data in block:
            await subject.feed(data)
        seconds += time.perf_counter() - start
        chunks += len(block)
    for index in range(choices):
        await subject.feed(of_choice(b"data: %b\n\n" % chunk({}, "stop"), index))
    await subject.feed(b"data: [DONE]\n\n")
    await subject.close()
    return seconds / chunks


def _blocks(text: str, event: Callable[[str], bytes], choices: int) -> Iterator[list[bytes]]:
    deltas = (text[start : start + DELTA_LENGTH] for start in range(0, len(text), DELTA_LENGTH))
    events = (of_choice(made, index) for made in map(event, deltas) for index in range(choices))
    while block := list(itertools.islice(events, _BLOCK)):
        yield block


def measure(settings: Settings, format: Format) -> dict[str, float]:
    text = reply(format, LENGTH)
    best = best_in_turns(
        {
            "floor": floor,
            "plain": partial(exchange, settings, text, event),
            "logprobs": partial(exchange, settings, text, event_with_logprobs),
            "responses": partial(exchange, replace(settings, responses="translate"), text, event, path="/responses"),
            "upstream_responses": partial(exchange, settings, text, response_event, path="/responses"),
            "n4": partial(exchange, settings, reply(format, LENGTH // CHOICES), event, CHOICES),
        },
        ROUNDS,
    )
    sizes = {str(size): partial(exchange, settings, reply(format, size), event) for size in SIZES}
    times = [seconds * size for size, seconds in zip(SIZES, best_in_turns(sizes, 3).values(), strict=True)]
    return {
        "floor_us": best["floor"] * 1e6,
        "us_per_chunk": best["plain"] * 1e6,
        "ratio_to_floor": best["plain"] / best["floor"],
        "us_per_chunk_logprobs": best["logprobs"] * 1e6,
        "ratio_to_floor_logprobs": best["logprobs"] / best["floor"],
        "us_per_chunk_n4": best["n4"] * 1e6,
        "ratio_to_floor_n4": best["n4"] / best["floor"],
        "us_per_chunk_responses": best["responses"] * 1e6,
        "ratio_to_floor_responses": best["responses"] / best["floor"],
        "us_per_chunk_upstream_responses": best["upstream_responses"] * 1e6,
        "ratio_to_floor_upstream_responses": best["upstream_responses"] / best["floor"],
        "growth": max(double / single for single, double in itertools.pairwise(times)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exchange", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--tool-parser", default="hermes")
    parser.add_argument("--reasoning-parser", default="qwen3")
    options = parser.parse_args()
    settings = Settings(tool_parser=options.tool_parser, reasoning_parser=options.reasoning_parser)
    if settings.format is None:
        parser.error("no parser is set")
    figures = {name: round(value, 3) for name, value in measure(settings, settings.format).items()}
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:34} {value:8.3f}")


if __name__ == "__main__":
    main()
