"""Which settings a request is read by: its model's, and those that its headers choose."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.exchange import Exchange
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.settings import Settings

MODELS = {
    "Qwen/Qwen3-8B": {"tool_parser": "hermes", "reasoning_parser": "qwen3", "deliver": "complete"},
    "*coder*": {"tool_parser": "qwen3_coder"},
    "*": {"tool_parser": "auto", "reasoning_parser": "auto"},
}


@pytest.mark.parametrize(
    ("model", "tool", "reasoning", "deliver"),
    [
        ("Qwen/Qwen3-8B", "hermes", "qwen3", "complete"),
        ("my-coder-7b", "qwen3_coder", "glm45", "stream"),
        ("openai/gpt-oss-20b", "openai", "openai_gptoss", "stream"),
        (None, "mistral", "glm45", "stream"),
        (7, "mistral", "glm45", "stream"),
    ],
)
def test_a_model_has_its_own_options(model: Any, tool: str, reasoning: str, deliver: str) -> None:
    settings = Settings(tool_parser="mistral", reasoning_parser="glm45", models=MODELS).for_request(model, ())
    assert (settings.tool_parser, settings.reasoning_parser, settings.deliver) == (tool, reasoning, deliver)


def test_a_model_that_no_pattern_names_has_the_other_options() -> None:
    settings = Settings(tool_parser="mistral", models={"qwen*": {"tool_parser": "hermes"}})
    assert settings.for_request("llama", ()) is settings


def test_auto_refuses_a_model_that_no_rule_knows() -> None:
    with pytest.raises(Refused, match="no rule knows the model name 'mystery'") as refused:
        Settings(models=MODELS).for_request("mystery", ())
    assert (refused.value.status, refused.value.param) == (400, "model")


def test_the_models_may_be_a_file(tmp_path: Any) -> None:
    file = tmp_path / "models.toml"
    file.write_text('["qwen*"]\ntool_parser = "hermes"\nstages = []\n')
    assert Settings(models=file).for_request("qwen3", ()).tool_parser == "hermes"
    settings = Settings.from_environment({"STREAMSIEVE_MODELS": str(file)})
    assert settings.for_request("qwen3", ()).tool_parser == "hermes"


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"qwen*": {"tool_parser": "herms"}}, r"models\['qwen\*'\]: .*herms.*hermes"),
        ({"qwen*": {"parser": "hermes"}}, r"models\['qwen\*'\].*'parser'"),
        ({"qwen*": {"models": {}}}, r"models\['qwen\*'\].*'models'"),
        ({"qwen*": {"paths": ["/x"]}}, r"models\['qwen\*'\].*'paths'"),
        ({"qwen*": "hermes"}, "models: model names or patterns"),
        ("/nowhere/models.toml", "models: /nowhere/models.toml: No such file"),
    ],
)
def test_models_that_cannot_work_are_refused_at_the_start(models: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Settings(models=models)


def test_a_file_that_is_no_toml_is_refused(tmp_path: Any) -> None:
    (tmp_path / "models.toml").write_text("[qwen*]")
    with pytest.raises(ConfigurationError, match=r"models: .*models\.toml: "):
        Settings(models=tmp_path / "models.toml")


CHOOSING = Settings(tool_parser="hermes", header_parsers=["mistral", "qwen3"])


@pytest.mark.parametrize(
    ("headers", "tool", "reasoning"),
    [
        ([], "hermes", None),
        ([(b"x-streamsieve-tool-parser", b"mistral")], "mistral", None),
        ([(b"x-streamsieve-tool-parser", b"none"), (b"x-streamsieve-reasoning-parser", b" qwen3 ")], "none", "qwen3"),
    ],
)
def test_a_request_chooses_its_parsers_where_it_may(headers: Any, tool: str, reasoning: str | None) -> None:
    chosen = CHOOSING.for_request("m", headers)
    assert (chosen.tool_parser, chosen.reasoning_parser) == (tool, reasoning)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (b"x-streamsieve-tool-parser", b"hermes", "'hermes' is not allowed here. Choices: none, mistral, qwen3"),
        (b"x-streamsieve-reasoning-parser", b"mistral\xff", "not allowed here"),
        (b"x-streamsieve-tool-parser", b"qwen3", "qwen3"),
    ],
)
def test_a_choice_that_a_request_may_not_make_is_refused(name: bytes, value: bytes, message: str) -> None:
    exchange = Exchange(CHOOSING, orjson.dumps({"model": "m", "messages": []}), headers=[(name, value)])
    assert exchange.refusal is not None
    assert message in orjson.loads(exchange.refusal.body)["error"]["message"]


def test_headers_choose_nothing_unless_that_is_allowed() -> None:
    settings = Settings(tool_parser="hermes")
    assert settings.for_request("m", [(b"x-streamsieve-tool-parser", b"mistral")]) is settings


def test_a_parser_that_is_none_cannot_be_allowed() -> None:
    with pytest.raises(ConfigurationError, match=r"header_parsers.*misstral"):
        Settings(header_parsers=["misstral"])


class Unhashable(list[object]):
    """An observer, as a dataclass may be one too."""

    def __call__(self, record: object) -> None:
        self.append(record)


def test_an_observer_need_not_be_hashable() -> None:
    settings = Settings(models=MODELS, header_parsers=["hermes"], observers=[Unhashable()])
    routed = settings.for_request("my-coder-7b", [(b"x-streamsieve-tool-parser", b"hermes")])
    assert routed.tool_parser == "hermes"
    assert routed.told[0] is settings.told[0]


def test_models_of_one_pattern_share_their_settings() -> None:
    """Else whoever asks for a new name each time has the files of the options read each time."""
    settings = Settings(models=MODELS)
    assert settings.for_request("a-coder", ()) is settings.for_request("b-coder", ())
