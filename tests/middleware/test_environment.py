"""Loaded by name, settings from the environment, as `vllm serve --middleware MODULE.NAME` does it."""

from __future__ import annotations

import importlib
import inspect

import pytest
from starlette.applications import Starlette

from streamsieve.middleware import EnvironmentSieveMiddleware
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.options import Options
from streamsieve.wire.settings import Settings

NAME = "streamsieve.middleware.EnvironmentSieveMiddleware"


def load(app: Starlette, name: str) -> None:
    """What a vLLM server does with one `--middleware`: a class is added, a coroutine function decorated."""
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    if inspect.isclass(found):
        app.add_middleware(found)
    elif inspect.iscoroutinefunction(found):
        app.middleware("http")(found)
    else:
        raise ValueError(name)


async def test_a_server_that_knows_only_the_name_serves_the_three_trays(monkeypatch, call, engine, chat, chunk, raw):
    monkeypatch.setenv("STREAMSIEVE_REASONING_PARSER", "qwen3")
    monkeypatch.setenv("STREAMSIEVE_TOOL_PARSER", "hermes")
    monkeypatch.setenv("STREAMSIEVE_REASONING_FIELD", "reasoning_content")
    app = Starlette()
    app.mount("/", engine(bodies=[chunk(raw), b"data: [DONE]\n\n"]))
    load(app, NAME)
    client = await call(app, chat())
    assert b'"reasoning_content":"The tide' in client.body
    assert b"<tool_call>" not in client.body


def test_the_settings_are_read_where_the_app_is_built(monkeypatch):
    monkeypatch.setenv("STREAMSIEVE_TOOL_PARSER", "hermes")
    monkeypatch.setenv("STREAMSIEVE_MAX_BODY", "1000")
    monkeypatch.setenv("STREAMSIEVE_PATHS", "/a,/b")
    sieve = EnvironmentSieveMiddleware(Starlette())
    assert sieve.settings == Settings(tool_parser="hermes", max_body=1000, paths=["/a", "/b"])


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, "STREAMSIEVE_TOOL_PARSER"),
        ({"STREAMSIEVE_DELIVER": "complete"}, "STREAMSIEVE_TOOL_PARSER"),
        ({"STREAMSIEVE_TOOL_PARSER": ""}, "STREAMSIEVE_TOOL_PARSER"),
        ({"STREAMSIEVE_TOOL_PARSER": "hermse"}, "hermes"),
        ({"STREAMSIEVE_TOOL_PARSER": "hermes", "STREAMSIEVE_MAX_BODY": "much"}, "STREAMSIEVE_MAX_BODY"),
    ],
    ids=str,
)
def test_an_environment_that_cannot_be_meant_stops_the_start(monkeypatch, variables, named):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=named):
        EnvironmentSieveMiddleware(Starlette())


def test_nothing_can_be_said_outright(monkeypatch):
    monkeypatch.setenv("STREAMSIEVE_TOOL_PARSER", "none")
    assert EnvironmentSieveMiddleware(Starlette()).settings.format is None


def test_each_setting_is_a_keyword():
    taken = {name for name, field in Settings.__dataclass_fields__.items() if field.init}
    assert set(Options.__annotations__) == taken
