"""`streamsieve demo`: raw model text beside the three trays as they fill, in two ways, with no weights.

A loopback server plays the recorded replies: raw under `/raw`, and with the middleware on top under the
family's name. The real `openai` client talks to both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamsieve.cli.columns import BOLD, DIM, LABEL, Line, Screen, lines_of
from streamsieve.cli.parser_options import Commands
from streamsieve.parsers.errors import unknown_choice

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import (
        ChatCompletionChunk,
        ChatCompletionMessage,
        ChatCompletionMessageParam,
        ChatCompletionToolParam,
    )
    from starlette.types import ASGIApp

    from streamsieve.backends.recording import Recording

DELAY = 0.012
"""Seconds a delta on a terminal: about the pace of a fast model. Elsewhere nobody watches."""

QUESTION: list[ChatCompletionMessageParam] = [
    {"role": "user", "content": "How are the tides in Brest in the next two days?"}
]
TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": "get_tide",
            "description": "Times and heights of the tides.",
            "parameters": {
                "type": "object",
                "properties": {"port": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["port"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "post_note",
            "description": "Leave a note.",
            "parameters": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "body": {"type": "string"}},
                "required": ["title", "body"],
            },
        },
    },
]


def add(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser(
        "demo", help="watch recorded replies being sorted, through the middleware and under the client"
    )
    command.set_defaults(run=run)
    command.add_argument("families", metavar="FAMILY", nargs="*", help="whose replies (default: all)")
    command.add_argument(
        "--scene", choices=("answer", "call", "parallel"), default="call", help="which reply (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Show each family; 1 where two ways gave different trays."""
    from openai import OpenAI

    from streamsieve.backends.loopback import loopback
    from streamsieve.backends.recording import recordings

    library = recordings()
    for family in options.families:
        if family not in library:
            raise unknown_choice("FAMILY", family, library)
    chosen = [library[family] for family in options.families or library]
    screen = Screen(sys.stdout)
    server = loopback(_application(chosen, DELAY if screen.is_terminal else 0.0))
    with server as url, OpenAI(base_url=f"{url}/raw/v1", api_key="none") as raw:
        agreed = [_show(screen, recording, options.scene, raw, url) for recording in chosen]
    same = all(agreed)
    verdict = "Every way gave the same trays." if same else "Some ways gave different trays."
    screen.write(Line(f"{len(agreed)} {'family' if len(agreed) == 1 else 'families'}. {verdict}", BOLD))
    return 0 if same else 1


@dataclass(slots=True)
class _Trays:
    """What the client has got so far."""

    reasoning: str = ""
    content: str = ""
    calls: list[list[str]] = field(default_factory=list)
    finish_reason: str | None = None

    def add(self, chunk: ChatCompletionChunk) -> None:
        for choice in chunk.choices:
            self.reasoning += getattr(choice.delta, "reasoning", None) or ""
            self.content += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                if call.function and call.function.name:
                    self.calls.append([call.function.name, ""])
                if call.function and call.function.arguments:
                    self.calls[call.index][1] += call.function.arguments
            self.finish_reason = choice.finish_reason or self.finish_reason

    @classmethod
    def whole(cls, message: ChatCompletionMessage, finish_reason: str) -> _Trays:
        calls = [
            [call.function.name, call.function.arguments]
            for call in message.tool_calls or ()
            if call.type == "function"
        ]
        return cls(getattr(message, "reasoning", None) or "", message.content or "", calls, finish_reason)

    def lines(self) -> list[Line]:
        return [
            Line("reasoning", LABEL),
            *_tray(self.reasoning),
            Line("content", LABEL),
            *_tray(self.content),
            Line("tool_calls", LABEL),
            *_tray("\n".join(f"{name} {arguments}" for name, arguments in self.calls)),
            Line(f"finish_reason: {self.finish_reason or '…'}", DIM),
        ]


def _tray(text: str) -> Iterable[Line]:
    return lines_of(text, indent="  ") if text else [Line("  —", DIM)]


def _application(chosen: Iterable[Recording], delay: float) -> ASGIApp:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from streamsieve.backends.replay import replay
    from streamsieve.middleware import SieveMiddleware

    player = replay(delay=delay)
    return Starlette(
        routes=[
            Mount("/raw", player),
            *(
                Mount(
                    f"/{recording.family}",
                    SieveMiddleware(
                        player, reasoning_parser=recording.reasoning_parser, tool_parser=recording.tool_parser
                    ),
                )
                for recording in chosen
            ),
        ]
    )


def _show(screen: Screen, recording: Recording, scene: str, raw: OpenAI, url: str) -> bool:
    from streamsieve.sdk_patch import wrap

    model = f"{recording.family}:{scene}"
    sieved = raw.with_options(base_url=f"{url}/{recording.family}/v1")
    parsers = " + ".join(filter(None, (recording.reasoning_parser, recording.tool_parser)))
    screen.write(Line(f"{recording.family} · {recording.title} · {parsers}", BOLD))
    shown = _watch(screen, raw, sieved, model)
    wrapped = wrap(raw, reasoning_parser=recording.reasoning_parser, tool_parser=recording.tool_parser)
    same = {
        "middleware, not streamed": _complete(sieved, model) == shown,
        "wrapped client, streamed": _stream(wrapped, model, _Trays()) == shown,
        "wrapped client, not streamed": _complete(wrapped, model) == shown,
    }
    for way, agrees in same.items():
        screen.write(Line(f"  {way}: {'the same' if agrees else 'DIFFERENT'}", DIM if agrees else BOLD))
    screen.write(Line(""))
    return all(same.values())


def _watch(screen: Screen, raw: OpenAI, sieved: OpenAI, model: str) -> _Trays:
    """Both streams of the same reply, side by side; what the second one came to."""
    trays, written = _Trays(), ""
    with ThreadPoolExecutor(1) as beside:
        sorting = beside.submit(_stream, sieved, model, trays)
        for chunk in raw.chat.completions.create(model=model, messages=QUESTION, tools=TOOLS, stream=True):
            written += chunk.choices[0].delta.content or ""
            screen.draw(lines_of(written, DIM), trays.lines())
        sorting.result()
    screen.settle(lines_of(written, DIM), trays.lines())
    return trays


def _stream(client: OpenAI, model: str, trays: _Trays) -> _Trays:
    for chunk in client.chat.completions.create(model=model, messages=QUESTION, tools=TOOLS, stream=True):
        trays.add(chunk)
    return trays


def _complete(client: OpenAI, model: str) -> _Trays:
    choice = client.chat.completions.create(model=model, messages=QUESTION, tools=TOOLS).choices[0]
    return _Trays.whole(choice.message, choice.finish_reason)
