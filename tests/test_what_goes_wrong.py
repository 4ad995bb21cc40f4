"""docs/what-goes-wrong.md, section by section: each symptom as it shows, and the setting that puts it right.

The server is the one that plays replies (`replay`), behind the middleware unless a section is about
something else; every test runs not streamed and streamed.
"""

from __future__ import annotations

import inspect
import io
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import pytest
from openai import OpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from streamsieve import SieveMiddleware, wrap
from streamsieve.backends.loopback import loopback
from streamsieve.backends.replay import replay
from streamsieve.cli.main import main
from streamsieve.parsers.events import Content, Event

PAGE = Path(__file__).parents[1] / "docs" / "what-goes-wrong.md"
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))

Body = Mapping[str, object]
PATH = "/v1/chat/completions"

HERMES = 'Let me look.<tool_call>\n{"name": "tide", "arguments": {"port": "Brest", "days": 2}}\n</tool_call>'
TAGGED = "<tool_call>\n<function=tide>\n<parameter=port>\n29200\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
TAGGED += "</function>\n</tool_call>"


def tool(properties: Mapping[str, object]) -> list[dict[str, object]]:
    parameters = {"type": "object", "properties": properties}
    return [{"type": "function", "function": {"name": "tide", "parameters": parameters}}]


TOOLS = tool({"port": {"type": "string"}, "days": {"type": "integer"}})


class Answer:
    """What a client gets: the message with its empty fields left out, and the finish reason."""

    def __init__(self, response: Any) -> None:
        self.finish: str | None = None
        self.message: dict[str, Any] = {}
        if response.headers["content-type"].startswith("application/json"):
            self._add(response.json()["choices"][0], "message")
        else:
            for line in response.text.splitlines():
                if line.startswith("data: {"):
                    self._add(json.loads(line.removeprefix("data: "))["choices"][0], "delta")

    def _add(self, choice: Mapping[str, Any], part: str) -> None:
        self.finish = choice["finish_reason"] or self.finish
        for field, value in choice[part].items():
            if field == "tool_calls":
                for call in value:
                    self._call(call)
            elif value and field != "role":
                self.message[field] = self.message.get(field, "") + value

    def _call(self, call: Mapping[str, Any]) -> None:
        calls = self.message.setdefault("tool_calls", [])
        if "id" in call:
            calls.append([call["function"]["name"], ""])
        calls[-1][1] += call["function"].get("arguments", "")

    @property
    def calls(self) -> list[list[str]]:
        found: list[list[str]] = self.message.get("tool_calls", [])
        return found


class Ask(Protocol):
    """Post a chat completion to an application; what `body` does not say is a request with one tool.

    `raw` is the reply, where the application plays what it is told.
    """

    def __call__(self, app: ASGIApp, raw: str | None = ..., body: Body = ..., *, path: str = ...) -> Answer: ...


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def ask(request: pytest.FixtureRequest) -> Ask:
    def asked(app: ASGIApp, raw: str | None = None, body: Body = MappingProxyType({}), *, path: str = PATH) -> Answer:
        standard = {"model": "hermes", "messages": [{"role": "user", "content": "?"}], "tools": TOOLS}
        played = {} if raw is None else {"replay": {"raw": raw, "chunk": 3}}
        with TestClient(app) as client:
            return Answer(client.post(path, json={**standard, "stream": request.param, **played, **body}))

    return asked


def test_calls_arrive_as_text(ask: Ask) -> None:
    for another in (None, "mistral"):
        assert ask(SieveMiddleware(replay(), tool_parser=another), HERMES).message == {"content": HERMES}
    answer = ask(SieveMiddleware(replay(), tool_parser="hermes"), HERMES)
    assert answer.message == {"content": "Let me look.", "tool_calls": [["tide", '{"port": "Brest", "days": 2}']]}
    assert answer.finish == "tool_calls"


def test_the_request_has_no_tools(ask: Ask) -> None:
    app = SieveMiddleware(replay(), tool_parser="hermes")
    assert ask(app, HERMES, {"tools": None}).message == {"content": HERMES}
    assert ask(app, HERMES, {"tool_choice": "none"}).message == {"content": HERMES}
    assert ask(app, HERMES, {"tools": TOOLS}).calls


def test_special_tokens_are_missing(ask: Ask) -> None:
    app = SieveMiddleware(engine('[TOOL_CALLS]tide[ARGS]{"port": "Brest"}'), tool_parser="mistral")
    assert ask(app).message == {"content": 'tide{"port": "Brest"}'}
    assert ask(app, body={"skip_special_tokens": False}).calls == [["tide", '{"port": "Brest"}']]


def engine(text: str, path: str = PATH) -> Starlette:
    """A server that leaves special tokens out unless it is told otherwise, as vLLM and SGLang do."""

    async def complete(request: Request) -> Response:
        body = await request.json()
        said = text if body.get("skip_special_tokens") is False else re.sub(r"\[[A-Z_]+\]", "", text)
        head = {"id": "1", "created": 1, "model": "m"}
        if not body["stream"]:
            choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
            return JSONResponse({**head, "object": "chat.completion", "choices": [choice]})

        async def events() -> AsyncIterator[str]:
            for delta, finish in (({"content": said}, None), ({}, "stop")):
                choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
                data = {**head, "object": "chat.completion.chunk", "choices": choices}
                yield f"data: {json.dumps(data)}\n\n"
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    return Starlette(routes=[Route(path, complete, methods=["POST"])])


def test_nothing_is_sorted(ask: Ask) -> None:
    elsewhere = engine(HERMES, path="/api/chat")
    assert ask(SieveMiddleware(elsewhere, tool_parser="hermes"), path="/api/chat").message == {"content": HERMES}
    app = SieveMiddleware(elsewhere, tool_parser="hermes", paths=["/api/chat"])
    assert ask(app, path="/api/chat").calls


def test_the_name_of_a_parser_is_unknown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(name: str) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(HERMES.encode())))
        return main(["parse", "--tool-parser", name])

    assert parse("herms") == 2
    assert "tool_parser: unknown name 'herms'. Did you mean 'hermes'?" in capsys.readouterr().err
    assert parse("hermes") == 0
    assert json.loads(capsys.readouterr().out)["tool_calls"][0]["name"] == "tide"


def test_thinking_is_in_the_content(ask: Ask) -> None:
    raw = "<think>Tides.</think>\n\nHigh."
    assert ask(SieveMiddleware(replay()), raw).message == {"content": raw}
    app = SieveMiddleware(replay(), reasoning_parser="qwen3")
    assert ask(app, raw).message == {"reasoning": "Tides.", "content": "High."}


def test_a_closing_think_tag_is_in_the_content(ask: Ask) -> None:
    raw = "Tides.</think>High."  # the template has written the opener
    assert ask(SieveMiddleware(replay(), reasoning_parser="hunyuan_a13b"), raw).message == {"content": raw}
    app = SieveMiddleware(replay(), reasoning_parser="hunyuan_a13b", prompt_tail="<think>\n")
    assert ask(app, raw).message == {"reasoning": "Tides.", "content": "High."}


def test_the_answer_is_in_the_reasoning(ask: Ask) -> None:
    app = SieveMiddleware(replay(), reasoning_parser="qwen3")
    assert ask(app, "High.").message == {"reasoning": "High."}
    assert ask(app, "High.", {"chat_template_kwargs": {"enable_thinking": False}}).message == {"content": "High."}
    app = SieveMiddleware(replay(), reasoning_parser="qwen3", prompt_tail="<think>\n\n</think>\n\n")
    assert ask(app, "High.").message == {"content": "High."}
    assert ask(SieveMiddleware(replay(), tool_parser="hermes"), "High.").message == {"content": "High."}


def test_the_content_is_empty(ask: Ask) -> None:
    app = SieveMiddleware(replay(), reasoning_parser="qwen3")
    raw = "<think>I think about the tides for a while.</think>High."
    answer = ask(app, raw, {"max_tokens": 8})
    assert (answer.message, answer.finish) == ({"reasoning": "I think about the tides f"}, "length")
    assert ask(app, raw, {"max_tokens": 100}).message["content"] == "High."


def test_constrained_output_is_in_the_reasoning(ask: Ask) -> None:
    app = SieveMiddleware(replay(), reasoning_parser="qwen3")
    raw = '{"height": 6.1}'  # the grammar allowed no closing tag
    wanted = {"response_format": {"type": "json_object"}}
    assert ask(app, raw, wanted).message == {"reasoning": raw}
    answer = ask(app, raw, {**wanted, "chat_template_kwargs": {"enable_thinking": False}})
    assert answer.message == {"content": raw}


def test_reasoning_content_is_null(ask: Ask) -> None:
    raw = "<think>Tides.</think>High."
    assert "reasoning_content" not in ask(SieveMiddleware(replay(), reasoning_parser="qwen3"), raw).message
    app = SieveMiddleware(replay(), reasoning_parser="qwen3", reasoning_field="reasoning_content")
    assert ask(app, raw).message == {"reasoning_content": "Tides.", "content": "High."}


def test_thinking_comes_twice(ask: Ask) -> None:
    def shown(answer: Answer) -> str:
        """What a client shows that reads both fields."""
        return "".join(answer.message.get(field, "") for field in ("reasoning", "reasoning_content"))

    raw = "<think>Tides.</think>High."
    app = SieveMiddleware(replay(), reasoning_parser="qwen3", reasoning_field="both")
    assert shown(ask(app, raw)) == "Tides.Tides."
    app = SieveMiddleware(replay(), reasoning_parser="qwen3", reasoning_field="reasoning")
    assert shown(ask(app, raw)) == "Tides."


def test_two_parsers_are_stacked(ask: Ask) -> None:
    async def shout(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            yield Content(event.text.upper()) if isinstance(event, Content) else event

    inner = SieveMiddleware(replay(), reasoning_parser="qwen3", tool_parser="hermes")
    raw = f"Tides.</think>{HERMES}"
    outer = SieveMiddleware(inner, reasoning_parser="qwen3", tool_parser="hermes", stages=[shout])
    assert ask(outer, raw).message["content"] == "Let me look."  # the outer one's stage has not run
    alone = SieveMiddleware(replay(), reasoning_parser="qwen3", tool_parser="hermes", stages=[shout])
    assert ask(alone, raw).message["content"] == "LET ME LOOK."
    assert ask(outer, "</think>High.").message == {"reasoning": "High."}  # sorted twice
    assert ask(alone, "</think>High.").message == {"content": "HIGH."}


def test_a_call_is_cut_off(ask: Ask) -> None:
    app = SieveMiddleware(replay(), tool_parser="hermes")
    cut = ask(app, HERMES, {"max_tokens": 17})
    assert (cut.calls, cut.finish) == ([["tide", '{"port": "Bres']], "length")
    held = ask(SieveMiddleware(replay(), tool_parser="hermes", deliver="complete"), HERMES, {"max_tokens": 17})
    assert (held.message, held.finish) == ({"content": HERMES[:68]}, "length")
    whole = ask(app, HERMES, {"max_tokens": 100})
    assert (json.loads(whole.calls[0][1]), whole.finish) == ({"port": "Brest", "days": 2}, "tool_calls")


def test_a_call_is_broken_in_the_stream(ask: Ask) -> None:
    raw = '<tool_call>\n{"name": "tide", "arguments": {"port": Brest}}\n</tool_call>'
    app = SieveMiddleware(replay(), tool_parser="hermes", deliver="complete")
    assert ask(app, raw).message == {"content": raw}
    with TestClient(SieveMiddleware(replay(), tool_parser="hermes")) as client:
        body = {
            "model": "hermes",
            "messages": [{"role": "user"}],
            "tools": TOOLS,
            "stream": True,
            "replay": {"raw": raw},
        }
        streamed = Answer(client.post(PATH, json=body))
    assert streamed.calls == [["tide", '{"port": ']]


def test_arguments_have_the_wrong_types(ask: Ask) -> None:
    app = SieveMiddleware(replay(), tool_parser="qwen3_coder")
    untyped = ask(app, TAGGED, {"tools": tool({"port": {}, "days": {}})}).calls[0][1]
    assert json.loads(untyped) != {"port": "29200", "days": 2}
    typed = tool({"port": {"type": "string"}, "days": {"type": "integer"}})
    assert json.loads(ask(app, TAGGED, {"tools": typed}).calls[0][1]) == {"port": "29200", "days": 2}


def test_a_json_answer_becomes_a_call(ask: Ask) -> None:
    app = SieveMiddleware(replay(), tool_parser="llama3_json")
    raw = '{"name": "Brest", "parameters": {"height": 6.1}}'
    assert ask(app, raw).calls == [["Brest", '{"height": 6.1}']]
    assert ask(app, raw, {"tool_choice": "none"}).message == {"content": raw}


def test_the_finish_reason_is_stop_with_a_call(ask: Ask) -> None:
    app = SieveMiddleware(replay(), tool_parser="hermes")
    assert ask(app, HERMES, {"tool_choice": {"type": "function", "function": {"name": "tide"}}}).finish == "stop"
    assert ask(app, HERMES, {"tool_choice": "required"}).finish == "tool_calls"


def test_the_wrapped_client_gives_no_calls() -> None:
    with loopback(replay()) as url, OpenAI(base_url=f"{url}/v1", api_key="none") as raw:
        request: dict[str, Any] = {"model": "hermes", "messages": [{"role": "user", "content": "?"}], "tools": TOOLS}
        wrap(raw, tool_parser="hermes", reasoning_parser="qwen3")
        assert not raw.chat.completions.create(**request).choices[0].message.tool_calls
        client = wrap(raw, tool_parser="hermes", reasoning_parser="qwen3")
        assert client.chat.completions.create(**request).choices[0].message.tool_calls


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_section_names_its_test_and_sets_what_that_sets(heading: str) -> None:
    section = SECTIONS[heading]
    (name,) = re.findall(r"^Test: `(test_\w+)`$", section, re.MULTILINE)
    source = inspect.getsource(globals()[name])
    (advice,) = re.findall(r"^\*\*Set\*\* (.*?)^$", section, re.MULTILINE | re.DOTALL)
    settings = [span for span in re.findall(r"`([^`]+)`", " ".join(advice.split())) if re.search(r"=|\": ", span)]
    assert settings or "**Set** nothing" in section
    for setting in settings:
        assert setting in source, f"{name} does not try {setting}"


def test_every_test_has_a_section() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text("utf-8")))
    ours = {name for name, value in globals().items() if name.startswith("test_") and inspect.isfunction(value)}
    assert named == {name for name in ours if not name.startswith("test_every_")}
