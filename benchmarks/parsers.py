"""What a delta costs in each format: `python -m benchmarks.parsers --json`.

The subject is a long reply in 4-character deltas: reasoning, content, and one call with a string
argument of 200 kB (prose with line breaks and quotes). Costs are microseconds a delta, and ratios to
the floor, one chat chunk decoded and encoded by orjson, both measured in turns. `growth` is what
twice the text costs over what the text does, over hostile texts too; it tells linear from quadratic
time, and 2 is ideal.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from benchmarks.floor import DELTA_LENGTH, best_in_turns, floor
from streamsieve.parsers.chain import Chain, run
from streamsieve.parsers.conformance.specimens import HOSTILE, asked, calls_are_known, speaks_beside_calls, thinks
from streamsieve.parsers.events import Event
from streamsieve.parsers.format import Format
from streamsieve.parsers.registry import listing, select
from streamsieve.parsers.results import Message, ToolCall

_PROSE = 'The plan is to write it "as is", step by step, and to check the result at the end of each line.\n'
_GROWTH_ROUNDS = 3
_TIMED = 200_000  # characters of the string argument
_GROWTH_FROM = (100_000, 1_600_000)  # characters, each compared with twice as many


def prose(size: int) -> str:
    """`size` characters of text with line breaks and quotes."""
    return (_PROSE * (size // len(_PROSE) + 1))[: size - 1] + "."


def reply(format: Format, size: int) -> str:
    """Reasoning, content and one call with a string argument of `size` characters, as `format` writes them."""
    calls = [ToolCall("call", "file.save", json.dumps({"body": prose(size)}))] if calls_are_known(format) else []
    message = Message(
        reasoning=prose(size // 20) if thinks(format) else None,
        content=prose(size // 20) if speaks_beside_calls(format) else None,
        tool_calls=calls,
    )
    return format.render(message, asked(format))


def hostile(unit: str, size: int) -> str:
    """`size` characters that repeat a unit made to be slow on."""
    return unit * (size // len(unit))


def endless(format: Format, size: int) -> str:
    """A call whose string argument never ends."""
    whole = reply(format, size)
    return whole[: whole.rindex(".")]


def deltas(text: str) -> list[str]:
    """`text` in pieces of DELTA_LENGTH characters."""
    return [text[at : at + DELTA_LENGTH] for at in range(0, len(text), DELTA_LENGTH)]


def machine_seconds(format: Format, pieces: Sequence[str]) -> float:
    """Seconds a delta for a machine fed by hand."""
    machine = format.machine(asked(format))
    feed = machine.feed
    start = time.perf_counter()
    for piece in pieces:
        feed(piece)
    machine.finish("stop")
    return (time.perf_counter() - start) / len(pieces)


async def _pass_on(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        yield event


async def _through_chain(format: Format, pieces: Sequence[str]) -> float:
    chain = Chain(format.machine(asked(format)), [_pass_on])
    feed = chain.feed
    start = time.perf_counter()
    for piece in pieces:
        await feed(piece)
    await chain.finish("stop")
    return (time.perf_counter() - start) / len(pieces)


def chain_seconds(format: Format, pieces: Sequence[str]) -> float:
    """Seconds a delta through the driver and one stage that passes everything on."""
    return run(_through_chain(format, pieces))


def growth(format: Format, text_of: Callable[[int], str]) -> float:
    """The larger time(2n)/time(n) at 100 kB and at 1.6 MB, both sizes measured in turns, the best of each."""
    worst = 0.0
    for size in _GROWTH_FROM:
        pieces = {name: deltas(text_of(length)) for name, length in (("once", size), ("twice", 2 * size))}
        seconds = best_in_turns(
            {name: partial(_processor_seconds, format, text) for name, text in pieces.items()}, _GROWTH_ROUNDS
        )
        worst = max(worst, seconds["twice"] / seconds["once"])
    return worst


def _processor_seconds(format: Format, pieces: Sequence[str]) -> float:
    """Processor time, which other processes do not add to, for a whole reply."""
    machine = format.machine(asked(format))
    feed = machine.feed
    start = time.process_time()
    for piece in pieces:
        feed(piece)
    machine.finish("stop")
    return time.process_time() - start


def peak_memory(format: Format, size: int = 10_000_000) -> int:
    """Bytes that a machine holds at most while it streams a reply of `size` characters, its events thrown away."""
    text = reply(format, size)
    machine = format.machine(asked(format))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for at in range(0, len(text), DELTA_LENGTH):
        machine.feed(text[at : at + DELTA_LENGTH])
    machine.finish("stop")
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return peak


def formats(names: Sequence[str]) -> dict[str, Format]:
    """The formats behind these tool parser names, thinking included where the format has it."""
    chosen = {}
    for name in names:
        tools = select(tool_parser=name, reasoning_parser=None)
        own = tools.name if tools else name
        entry = next((one for one in listing()["reasoning"] if one.get("format") == own), None)
        chosen[name] = select(tool_parser=name, reasoning_parser=entry["name"] if entry else None) or tools
    return {name: one for name, one in chosen.items() if one is not None}


def measure(chosen: dict[str, Format], *, rounds: int, grow: bool, memory: bool) -> dict[str, object]:
    """Everything for every format, as printed."""
    results = {}
    least = float("inf")
    for name, format in chosen.items():
        pieces = deltas(reply(format, _TIMED))
        best = best_in_turns(
            {
                "floor": floor,
                "machine": partial(machine_seconds, format, pieces),
                "chain": partial(chain_seconds, format, pieces),
            },
            rounds,
        )
        least = min(least, best["floor"])
        results[name] = {
            "us_per_delta": round(best["machine"] * 1e6, 3),
            "us_per_delta_chain": round(best["chain"] * 1e6, 3),
            "ratio_to_floor": round(best["machine"] / best["floor"], 3),
            "stage_to_floor": round((best["chain"] - best["machine"]) / best["floor"], 3),
        }
        if grow:
            texts: dict[str, Callable[[int], str]] = {
                "reply": partial(reply, format),
                "endless": partial(endless, format),
            }
            texts |= {kind: partial(hostile, unit) for kind, unit in HOSTILE.items()}
            grown = {kind: round(growth(format, text_of), 2) for kind, text_of in texts.items()}
            results[name] |= {"growth": max(grown.values()), "growth_by_text": grown}
        if memory:
            results[name]["peak_bytes_10MB"] = peak_memory(format)
    return {"floor_us": round(least * 1e6, 3), "formats": results}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parsers", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured (default: 5)")
    parser.add_argument("--no-growth", action="store_true", help="leave out growth, which takes minutes")
    parser.add_argument("--memory", action="store_true", help="the peak of a 10 MB reply too")
    parser.add_argument("names", nargs="*", help="tool parser names (default: all)")
    options = parser.parse_args()
    names = options.names or list(dict.fromkeys(entry["name"] for entry in listing()["tool"] if "error" not in entry))
    measured = measure(formats(names), rounds=options.rounds, grow=not options.no_growth, memory=options.memory)
    if options.json:
        json.dump(measured, sys.stdout, indent=2)
        print()
        return
    print(f"floor {measured['floor_us']} µs")
    for name, figures in measured["formats"].items():  # type: ignore[attr-defined]
        print(f"{name:18}", *(f"{key} {value}" for key, value in figures.items()), sep="  ")


if __name__ == "__main__":
    main()
