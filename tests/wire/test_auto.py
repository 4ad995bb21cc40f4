"""`auto` in `Settings`, which have no more than the model's name."""

from __future__ import annotations

import pytest

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.settings import Settings


def test_auto_becomes_the_names_that_the_rules_have_for_the_model() -> None:
    settings = Settings(tool_parser="auto", reasoning_parser="auto", model="Qwen/Qwen3-8B")
    assert (settings.tool_parser, settings.reasoning_parser) == ("hermes", "qwen3")
    assert settings.format == Settings(tool_parser="hermes", reasoning_parser="qwen3").format


def test_the_model_comes_from_the_environment_too() -> None:
    environ = {"STREAMSIEVE_TOOL_PARSER": "auto", "STREAMSIEVE_MODEL": "openai/gpt-oss-20b"}
    assert Settings.from_environment(environ).tool_parser == "openai"


@pytest.mark.parametrize(("model", "words"), [(None, "needs model"), ("gpt-4o", "'gpt-4o'"), (7, "model: a string")])
def test_what_is_refused(model: object, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Settings(tool_parser="auto", model=model)  # type: ignore[arg-type]
