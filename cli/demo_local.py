"""`streamsieve demo-local`: a small real model on this machine, held to schemas, in one batch with free chats.

Four requests go out at once through the real `openai` client, streamed: a tool call and an answer that have to
follow a schema, and two chats that may say what they like.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamsieve.backends.local.model.options import ModelOptions
from streamsieve.cli.columns import BOLD, DIM, LABEL, Line, Screen, lines_of
from streamsieve.cli.local_model import LoadingShown, before_loading, local_backend
from streamsieve.cli.parser_options import Commands

if TYPE_CHECKING:
    from openai import OpenAI
    from pydantic import BaseModel

    from streamsieve.backends.local.server.application import LocalBackend

POLL = 0.1
"""Seconds between two looks at what has come."""

MAX_TOKENS = 96


def add(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser(
        "demo-local", help="watch a small real model on this machine be held to schemas (fetches it once, 93 MB)"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fetch the model where it is not there, serve it, ask it; 1 where a schema was not kept."""
    before_loading()
    from openai import OpenAI

    from streamsieve.backends.application import application
    from streamsieve.backends.local.model.demo_model import fetch
    from streamsieve.backends.loopback import loopback
    from streamsieve.wire.settings import Settings

    folder = fetch(progress=LoadingShown(sys.stderr).report)
    settings = Settings(tool_parser="hermes", tokenizer=folder)
    backend = local_backend(ModelOptions(source=folder, slots=4, max_model_len=1024), settings, sys.stderr)
    with loopback(application(backend, settings)) as url, OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        _wait_for(backend)
        return _show(Screen(sys.stdout), client.with_options(timeout=600), folder.name)


def _wait_for(backend: LocalBackend) -> None:
    while not backend.is_ready:
        if backend.failure is not None:
            raise backend.failure
        time.sleep(POLL)


@dataclass(slots=True)
class _Asked:
    """One of the four requests, and what has come of its reply. `schema`: what it has to follow."""

    title: str
    question: str
    fields: Mapping[str, object] = field(default_factory=dict)
    schema: type[BaseModel] | None = None
    text: str = ""
    finish_reason: str | None = None

    def ask(self, client: OpenAI, model: str) -> None:
        """Read the reply to its end, on a thread of its own."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": self.question}],
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
            **self.fields,
        }
        for chunk in client.chat.completions.create(**body, stream=True):
            for choice in chunk.choices:
                self.text += choice.delta.content or ""
                for call in choice.delta.tool_calls or ():
                    self.text += f"{call.function.name} " if call.function.name else ""
                    self.text += call.function.arguments or ""
                self.finish_reason = choice.finish_reason or self.finish_reason

    @property
    def verdict(self) -> str:
        """What the schema says of it; empty where it is free."""
        if self.schema is None or self.finish_reason is None:
            return ""
        from pydantic import ValidationError

        try:
            self.schema.model_validate_json(self.text[self.text.index("{") :])
        except (ValidationError, ValueError) as error:
            return f"does NOT follow its schema: {error}"
        return "follows its schema"

    def lines(self) -> list[Line]:
        ended = self.finish_reason or "…"
        said = f"{ended}, {self.verdict}" if self.verdict else ended
        shown = lines_of(self.question, DIM)
        return [Line(self.title, LABEL), *shown, *lines_of(self.text, indent="  "), Line(said, DIM), Line("")]


def _requests() -> tuple[Sequence[_Asked], Sequence[_Asked]]:
    """Those that are bound, and those that are free."""
    from typing import Literal

    from openai import pydantic_function_tool
    from pydantic import BaseModel, ConfigDict

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)

    class GetWeather(Strict):
        """The weather of a city."""

        city: str
        unit: Literal["celsius", "fahrenheit"]
        days: int

    class Person(Strict):
        name: str
        age: int
        plays: list[Literal["chess", "go", "football"]]

    form = {"name": "person", "schema": Person.model_json_schema(), "strict": True}
    call = {
        "tools": [pydantic_function_tool(GetWeather, name="get_weather")],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    bound = [
        _Asked("a tool call that is required", "What will the weather be in Paris in three days?", call, GetWeather),
        _Asked(
            "an answer in JSON",
            "Bob is 42 years old and plays chess. Who is he?",
            {"response_format": {"type": "json_schema", "json_schema": form}},
            Person,
        ),
    ]
    free = [
        _Asked("a chat", "What is the capital of France?"),
        _Asked("another chat", "Write one sentence about the sea.", {"temperature": 0.8, "seed": 4}),
    ]
    return bound, free


def _show(screen: Screen, client: OpenAI, model: str) -> int:
    bound, free = _requests()
    screen.write(Line(f"{model}: four replies at once, two of them held to a schema", BOLD))
    began = time.monotonic()
    with ThreadPoolExecutor(4) as threads:
        replies = [threads.submit(asked.ask, client, model) for asked in (*bound, *free)]
        while _are_coming(replies):
            screen.draw(_lines(bound), _lines(free))
    screen.settle(_lines(bound), _lines(free))
    kept = sum(asked.verdict == "follows its schema" for asked in bound)
    seconds = time.monotonic() - began
    screen.write(Line(f"{kept} of {len(bound)} schemas kept; all four took {seconds:.1f} s.", BOLD))
    return 0 if kept == len(bound) else 1


def _are_coming(replies: Sequence[Future[None]]) -> bool:
    done, coming = wait(replies, POLL)
    for reply in done:
        reply.result()  # raises what went wrong
    return bool(coming)


def _lines(requests: Iterable[_Asked]) -> list[Line]:
    return [line for asked in requests for line in asked.lines()]
