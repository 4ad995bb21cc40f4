"""What settings may be, from code and from the environment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import fields
from typing import Any

import pytest

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.events import Event
from streamsieve.wire.options import Options, settings_from
from streamsieve.wire.settings import Settings


async def shout(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        yield event


# options, what the error says
REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"tool_parser": "hermse"}, ["tool_parser", "hermse", "hermes", "mistral"]),
    ({"reasoning_parser": "deepseek_r2"}, ["reasoning_parser", "deepseek_r2", "deepseek_r1"]),
    ({"tool_parser": ["hermes"]}, ["tool_parser", "['hermes']"]),
    ({"stages": ["no_such_stage"]}, ["stages", "no_such_stage"]),
    ({"stages": "shout"}, ["stages", "a list"]),
    ({"stages": shout}, ["stages", "a list"]),
    ({"stages": [3]}, ["stages", "3"]),
    ({"reasoning_field": "thinking"}, ["reasoning_field", "thinking", "reasoning_content", "both"]),
    ({"deliver": "later"}, ["deliver", "later", "stream", "complete"]),
    ({"upstream": "vlm"}, ["upstream", "vlm", "Did you mean 'vllm'?", "llama.cpp", "openai"]),
    ({"upstream": "http://127.0.0.1"}, ["upstream", "vllm", "tgi"]),
    ({"tool_strict_level": "off"}, ["tool_strict_level", "off", "auto", "function", "parameter"]),
    ({"enforcement": "never"}, ["enforcement", "never", "always", "best_effort"]),
    ({"prompt_tail": 3}, ["prompt_tail", "3"]),
    ({"responses": "both"}, ["responses", "both", "parse", "translate"]),
    ({"paths": "/chat/completions"}, ["paths", "a list"]),
    ({"paths": ["chat/completions"]}, ["paths", "chat/completions"]),
    ({"paths": [3]}, ["paths", "3"]),
    ({"max_body": 0}, ["max_body", "0"]),
    ({"max_body": True}, ["max_body", "True"]),
    ({"max_body": "1"}, ["max_body", "'1'"]),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_what_cannot_work_is_refused_at_once(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as error:
        Settings(**options)
    assert [word for word in words if word not in str(error.value)] == []


PARSES = [
    ({}, False),
    ({"tool_parser": "none", "reasoning_parser": "none"}, False),
    ({"tool_parser": "hermes"}, True),
    ({"reasoning_parser": "qwen3"}, True),
    ({"stages": [shout]}, True),
]


@pytest.mark.parametrize(("options", "parses"), PARSES)
def test_whether_anything_is_parsed(options: dict[str, Any], parses: bool) -> None:
    assert Settings(**options).parses == parses


def test_sequences_are_kept_as_tuples() -> None:
    settings = Settings(stages=[shout], paths=["/a", "/b"])
    assert (settings.stages, settings.stage_functions, settings.paths) == ((shout,), (shout,), ("/a", "/b"))


MATCHES = [
    ("POST", "/v1/chat/completions", True),
    ("POST", "/chat/completions", True),
    ("POST", "/v1/responses", True),
    ("GET", "/v1/chat/completions", False),
    ("GET", "/v1/responses", False),
    ("POST", "/v1/responses/resp_1/cancel", False),
    ("POST", "/v1/completions", False),
    ("POST", "/v1/chat/completions/x", False),
    ("POST", "/v1/mychat/completions", False),
]


@pytest.mark.parametrize(("method", "path", "ours"), MATCHES)
def test_matches(method: str, path: str, ours: bool) -> None:
    assert Settings().matches(method, path) == ours


ENVIRONMENTS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {}),
    ({"TOOL_PARSER": "hermes", "OTHER_TOOL_PARSER": "mistral"}, {}),
    ({"STREAMSIEVE_TOOL_PARSER": "hermes"}, {"tool_parser": "hermes"}),
    ({"STREAMSIEVE_TOOL_PARSER": "", "STREAMSIEVE_MAX_BODY": ""}, {}),
    ({"STREAMSIEVE_REASONING_PARSER": "qwen3"}, {"reasoning_parser": "qwen3"}),
    ({"STREAMSIEVE_REASONING_FIELD": "both"}, {"reasoning_field": "both"}),
    ({"STREAMSIEVE_DELIVER": "complete"}, {"deliver": "complete"}),
    ({"STREAMSIEVE_UPSTREAM": "llama.cpp", "STREAMSIEVE_ENFORCEMENT": "always"}, {"upstream": "llama.cpp"}),
    ({"STREAMSIEVE_TOOL_STRICT_LEVEL": "function"}, {"tool_strict_level": "function"}),
    ({"STREAMSIEVE_RESPONSES": "translate"}, {"responses": "translate"}),
    ({"STREAMSIEVE_PROMPT_TAIL": "<think>\n"}, {"prompt_tail": "<think>\n"}),
    ({"STREAMSIEVE_PATHS": "/a, /b,"}, {"paths": ("/a", "/b")}),
    ({"STREAMSIEVE_MAX_BODY": "1000"}, {"max_body": 1000}),
    ({"STREAMSIEVE_PLUGINS": "x", "STREAMSIEVE_PORT": "tcp://1:2", "STREAMSIEVE_SERVICE_HOST": "10.0.0.1"}, {}),
]


@pytest.mark.parametrize(("environ", "options"), ENVIRONMENTS)
def test_from_environment(environ: dict[str, str], options: dict[str, Any]) -> None:
    assert Settings.from_environment(environ) == Settings(**options)


BAD_ENVIRONMENTS = [
    ({"STREAMSIEVE_MAX_BODY": "1 MB"}, ["STREAMSIEVE_MAX_BODY", "1 MB"]),
    ({"STREAMSIEVE_STAGES": "one, two"}, ["stages", "one"]),
    ({"STREAMSIEVE_TOOL_PARSER": "hermse"}, ["tool_parser", "hermes"]),
    ({"STREAMSIEVE_TOOLPARSER": "hermes"}, ["STREAMSIEVE_TOOLPARSER", "STREAMSIEVE_TOOL_PARSER"]),
    ({"STREAMSIEVE_TOOL_CALL_PARSER": "hermes"}, ["STREAMSIEVE_TOOL_CALL_PARSER", "STREAMSIEVE_TOOL_PARSER"]),
    ({"STREAMSIEVE_tool_parser": "hermes"}, ["STREAMSIEVE_tool_parser", "STREAMSIEVE_TOOL_PARSER"]),
    ({"STREAMSIEVE_STAGE": "x"}, ["STREAMSIEVE_STAGE", "STREAMSIEVE_STAGES"]),
]


@pytest.mark.parametrize(("environ", "words"), BAD_ENVIRONMENTS)
def test_what_is_refused_in_the_environment(environ: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as error:
        Settings.from_environment(environ)
    assert [word for word in words if word not in str(error.value)] == []


def test_another_prefix() -> None:
    assert Settings.from_environment({"MY_TOOL_PARSER": "hermes"}, prefix="MY_").tool_parser == "hermes"


def test_options_are_the_fields_of_settings() -> None:
    assert Options.__annotations__.keys() == {field.name for field in fields(Settings) if field.init}


def test_settings_come_whole_or_one_by_one() -> None:
    settings = Settings(deliver="complete")
    assert settings_from(settings, {}) is settings
    assert settings_from(None, {"deliver": "complete"}) == settings
    with pytest.raises(ConfigurationError, match="deliver"):
        settings_from(settings, {"deliver": "stream"})
