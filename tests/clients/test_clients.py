"""Real clients, each in an environment of its own, before a real server: what each shows of the same replies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamsieve import SieveMiddleware
from streamsieve.backends.loopback import loopback
from streamsieve.backends.recording import Recording
from streamsieve.backends.replay import replay
from streamsieve.wire.settings import ReasoningField

HERE = Path(__file__).parent
DRIVERS = HERE / "drivers"
REQUIREMENTS = HERE / "requirements"
PAGE = (HERE.parents[1] / "docs" / "clients.md").read_text(encoding="utf-8")

Way = Literal["whole", "streamed"]
Show = Literal["reasoning", "content", "finish_reason", "then"]


@dataclass(frozen=True)
class Reply:
    """What the model writes, and the trays that it makes."""

    raw: str
    reasoning: str
    content: str | None
    calls: Sequence[tuple[str, Mapping[str, object]]] = ()


REPLIES = {
    "answer": Reply(
        "<think>\nBodø lies north — 小さい tides. 🌊\n</think>\n\nIn Bodø: 2,4 m “high”.\n日本語 👩‍🚀.<|im_end|>",
        "Bodø lies north — 小さい tides. 🌊",
        "In Bodø: 2,4 m “high”.\n日本語 👩‍🚀.",
    ),
    "one_call": Reply(
        "<think>\nTides — I look.\n</think>\n\nOne moment. 😀\n<tool_call>\n"
        '{"name": "get_tide", "arguments": {"port": "Bodø", "days": 2}}\n</tool_call><|im_end|>',
        "Tides — I look.",
        "One moment. 😀",
        [("get_tide", {"port": "Bodø", "days": 2})],
    ),
    "parallel": Reply(
        "<think>\nAll of them.\n</think>\n\nI look.\n<tool_call>\n"
        '{"name": "get_tide", "arguments": {"port": "Bodø", "days": 2}}\n</tool_call>\n<tool_call>\n'
        '{"name": "list_ports", "arguments": {}}\n</tool_call>\n<tool_call>\n'
        '{"name": "get_tide", "arguments": {"port": "東京 🗼 \\"Q\\"\\n", "days": 1}}\n</tool_call><|im_end|>',
        "All of them.",
        "I look.",
        [
            ("get_tide", {"port": "Bodø", "days": 2}),
            ("list_ports", {}),
            ("get_tide", {"port": '東京 🗼 "Q"\n', "days": 1}),
        ],
    ),
    "empty_arguments": Reply(
        '<think>\nWhich?\n</think>\n\n<tool_call>\n{"name": "list_ports", "arguments": {}}\n</tool_call><|im_end|>',
        "Which?",
        None,
        [("list_ports", {})],
    ),
}
AFTER_THE_TOOLS = Reply("<think>Now I know.</think>\n\nBodø: 2,4 m. 😀<|im_end|>", "Now I know.", "Bodø: 2,4 m. 😀")


@dataclass(frozen=True)
class Client:
    """`drops`: what it does not show. `doubles`: in which ways it shows reasoning twice that is sent in both fields.

    `returns`: how the reasoning comes back in the history.
    """

    name: str
    driver: str
    environment: str
    drops: Mapping[Way, frozenset[Show]] = field(default_factory=dict)
    doubles: frozenset[Way] = frozenset()
    calls_when_streamed: int | None = None
    needs_a_call: bool = False
    returns: Literal["", "as it came", "as reasoning_content", "if it came as reasoning", "never"] = ""

    def __str__(self) -> str:
        return self.name

    def drops_reasoning(self) -> bool:
        return all("reasoning" in self.drops.get(way, ()) for way in get_args(Way))

    def models(self) -> list[str]:
        return [model for model, reply in REPLIES.items() if reply.calls or not self.needs_a_call]

    def shows(self, reply: Reply, way: Way, reasoning_field: ReasoningField) -> dict[str, object]:
        """What its driver is to print of a reply."""
        doubled = reasoning_field == "both" and way in self.doubles
        most = self.calls_when_streamed if way == "streamed" else None
        shown: dict[str, object] = {
            "reasoning": reply.reasoning * (2 if doubled else 1),
            "content": reply.content,
            "calls": [[name, arguments] for name, arguments in reply.calls[:most]],
            "finish_reason": "tool_calls" if reply.calls else "stop",
            "then": AFTER_THE_TOOLS.content if reply.calls else None,
        }
        return {**shown, **dict.fromkeys(self.drops.get(way, ()))}


REASONING = {"reasoning", "reasoning_content"}
RETURNS: dict[str, list[set[str]]] = {
    "as it came": [{"reasoning"}, {"reasoning_content"}],
    "as reasoning_content": [{"reasoning_content"}, {"reasoning_content"}],
    "if it came as reasoning": [{"reasoning"}, set()],
    "never": [set(), set()],
}
"""The fields of the history that it is in, where it was sent as `reasoning`, and as `reasoning_content`."""

BOTH_WAYS: tuple[Way, ...] = get_args(Way)
CLIENTS = [
    Client("openai 3", "openai_client.py", "openai3", returns="as it came"),
    Client("openai 2", "openai_client.py", "openai2", returns="as it came"),
    Client(
        "langchain-openai",
        "langchain_chat.py",
        "langchain",
        drops=dict.fromkeys(BOTH_WAYS, frozenset({"reasoning"})),
        returns="never",
    ),
    Client("langchain-deepseek", "langchain_deepseek_chat.py", "langchain", returns="never"),
    Client("pydantic-ai", "pydantic_ai_agent.py", "pydantic-ai", returns="as it came"),
    Client(
        "openai-agents",
        "openai_agents_runner.py",
        "openai-agents",
        drops=dict.fromkeys(BOTH_WAYS, frozenset({"finish_reason"})),
        doubles=frozenset({"streamed"}),
        returns="if it came as reasoning",
    ),
    Client(
        "instructor",
        "instructor_models.py",
        "instructor",
        drops={
            "whole": frozenset({"then"}),
            "streamed": frozenset({"reasoning", "content", "finish_reason", "then"}),
        },
        calls_when_streamed=1,
        needs_a_call=True,
    ),
    Client("litellm", "litellm_completion.py", "litellm", returns="as reasoning_content"),
    Client("Vercel AI SDK", "vercel_ai_sdk.mjs", "vercel", returns="as reasoning_content"),
]
LOOPBACK_ONLY = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it fetches one from the internet otherwise
    "NO_PROXY": "127.0.0.1",
}


@dataclass
class Played:
    """What a client's driver printed, by the name of the reasoning, and what the server was asked for it."""

    shown: Mapping[ReasoningField, Mapping[str, Mapping[Way, object]]]
    asked: Sequence[tuple[str, list[Any]]]


@dataclass
class Witness:
    """Keeps the messages of each request that reaches an application, and the path that it came to."""

    app: ASGIApp
    asked: list[tuple[str, list[Any]]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""

        async def heard() -> Message:
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            if message["type"] == "http.request" and not message.get("more_body", False):
                self.asked.append((scope["path"], json.loads(body)["messages"]))
            return message

        await self.app(scope, heard, send)


@pytest.fixture(scope="module")
def witness() -> Witness:
    """The same replies with the reasoning under each of the names, which the path begins with."""
    library = {
        name: Recording(name, name, "hermes", "qwen3", {"call": reply.raw, "answer": AFTER_THE_TOOLS.raw})
        for name, reply in REPLIES.items()
    }
    names: tuple[ReasoningField, ...] = get_args(ReasoningField)
    app = Starlette(
        routes=[
            Mount(
                f"/{name}",
                SieveMiddleware(
                    replay(library=library, chunk=3),
                    reasoning_parser="qwen3",
                    tool_parser="hermes",
                    reasoning_field=name,
                ),
            )
            for name in names
        ]
    )
    return Witness(app)


@pytest.fixture(scope="module")
def servers(witness: Witness) -> Iterator[dict[ReasoningField, str]]:
    """The base URL for each name of the reasoning."""
    names: tuple[ReasoningField, ...] = get_args(ReasoningField)
    with loopback(witness) as url:
        yield {name: f"{url}/{name}/v1" for name in names}


@pytest.fixture(scope="module")
def commands(request: Any, environment: Any, node_modules: Any) -> Iterator[dict[str, Future[list[str]]]]:
    """How to run the drivers of the clients that are asked for, by environment; two are made at a time."""

    def command(name: str) -> list[str]:
        pinned = REQUIREMENTS / name
        if not pinned.is_dir():
            pins = pinned.with_suffix(".txt").read_text(encoding="utf-8").split()
            return [str(environment(name, pins)), str(DRIVERS)]
        if not (shutil.which("node") and shutil.which("npm")):
            pytest.skip("there is no Node on this machine")
        home = node_modules(pinned)
        for driver in DRIVERS.glob("*.mjs"):
            shutil.copy(driver, home)  # a module's imports are looked up from where it lies
        return ["node", str(home)]

    drives = [item for item in request.session.items if item.path == request.path and "commands" in item.fixturenames]
    asked = [item.callspec.params["client"] for item in drives]
    with ThreadPoolExecutor(2) as makers:
        yield {name: makers.submit(command, name) for name in dict.fromkeys(client.environment for client in asked)}


@pytest.fixture(scope="module")
def play(servers: Any, commands: Any, witness: Witness) -> Callable[[Client], Played]:
    """Run the driver of a client, once."""
    played: dict[str, Played] = {}

    def run(client: Client) -> Played:
        if client.name not in played:
            program, folder = commands[client.environment].result()
            arguments = [",".join(client.models()), *servers.values()]
            witness.asked.clear()
            done = subprocess.run(
                [program, f"{folder}/{client.driver}", *arguments],
                capture_output=True,
                text=True,
                env={**os.environ, **LOOPBACK_ONLY},
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            shown = json.loads(done.stdout)
            played[client.name] = Played({name: shown[url] for name, url in servers.items()}, [*witness.asked])
        return played[client.name]

    return run


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_trays_as_a_client_shows_them(client: Client, play: Any) -> None:
    for reasoning_field, replies in play(client).shown.items():
        for model, ways in replies.items():
            for way, shown in ways.items():
                expected = client.shows(REPLIES[model], way, reasoning_field)
                assert shown == expected, (reasoning_field, model, way)


@pytest.mark.parametrize("client", [client for client in CLIENTS if client.returns], ids=str)
def test_what_a_client_sends_back_after_its_tools(client: Client, play: Any) -> None:
    """Each call with its arguments as one JSON object, each answered, and the reasoning."""
    names: dict[str, set[str]] = {"reasoning": set(), "reasoning_content": set(), "both": set()}
    turns = 0
    for path, messages in play(client).asked:
        for message in messages:
            if message["role"] == "assistant":
                turns += 1
                names[path.split("/")[1]] |= message.keys() & REASONING
                calls = message["tool_calls"]
                answers = [answer["tool_call_id"] for answer in messages if answer["role"] == "tool"]
                assert [call["id"] for call in calls] == answers
                assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls] in [
                    reply.calls for reply in REPLIES.values()
                ]
    assert turns == sum(bool(reply.calls) for reply in REPLIES.values()) * len(BOTH_WAYS) * len(names)
    assert [names["reasoning"], names["reasoning_content"]] == RETURNS[client.returns]


def test_the_page_lists_the_clients_as_they_are_tried() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]
    assert rows[2:] == [row(client) for client in CLIENTS]


def row(client: Client) -> list[str]:
    dropped = client.drops.get("whole", frozenset()), client.drops.get("streamed", frozenset())
    always, streamed = dropped[0] & dropped[1] - {"then"}, dropped[1] - dropped[0]
    shown = "never" if client.drops_reasoning() else "once"
    return [
        client.name,
        version(client),
        "neither" if client.drops_reasoning() else "either field",
        " ".join(("twice when", *client.doubles)) if client.doubles else shown,
        client.returns,
        ", ".join(sorted(always)) + (f"when streamed: {', '.join(sorted(streamed))}" if streamed else ""),
    ]


def version(client: Client) -> str:
    pinned = REQUIREMENTS / client.environment
    if pinned.is_dir():
        return str(json.loads((pinned / "package.json").read_text(encoding="utf-8"))["dependencies"]["ai"])
    pins = pinned.with_suffix(".txt").read_text(encoding="utf-8").split()
    (found,) = (pin.rpartition("==")[2] for pin in pins if len(pins) == 1 or pin.startswith(client.name + "=="))
    return found


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_code_on_the_page_is_what_the_driver_does(client: Client) -> None:
    section = PAGE.partition(f"\n## {client.name.removesuffix(' 3').removesuffix(' 2')}\n")[2].partition("\n## ")[0]
    _, code, _ = section.split("```")
    driver = (DRIVERS / client.driver).read_text(encoding="utf-8")
    assert lines(code.partition("\n")[2]) <= lines(driver)


def lines(code: str) -> set[str]:
    return {line.strip() for line in code.splitlines() if line.strip()}
