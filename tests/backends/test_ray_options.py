"""What `ray_serve:build` is told, as a command line and a configuration file spell it, and what Ray is told."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamsieve.backends.local.model.options import ModelOptions
from streamsieve.backends.ray_options import RayOptions
from streamsieve.parsers.errors import ConfigurationError

PAGE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")
WORDS = ("kind: Deployment", "import_path:")
MODEL = {"model": "/models/m"}
LEFT_OUT = RayOptions(model=ModelOptions(source=Path("/models/m")), sieve={}, num_gpus=1.0, num_cpus=1.0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, LEFT_OUT),
        ({"device": "cpu"}, replace(LEFT_OUT, model=replace(LEFT_OUT.model, device="cpu"), num_gpus=0.0)),
        ({"device": "cpu", "num_gpus": 1}, replace(LEFT_OUT, model=replace(LEFT_OUT.model, device="cpu"))),
        ({"num_gpus": "0.5", "num_cpus": "4"}, replace(LEFT_OUT, num_gpus=0.5, num_cpus=4.0)),
        ({"num_replicas": "3"}, replace(LEFT_OUT, replicas=3)),
        ({"max_replicas": 4}, replace(LEFT_OUT, most_replicas=4)),
        ({"min_replicas": "2", "max_replicas": "4"}, replace(LEFT_OUT, replicas=2, most_replicas=4)),
        ({"api_key": "k"}, replace(LEFT_OUT, api_key="k")),
        (
            {"slots": "8", "queue": 9, "max_model_len": "100", "dtype": "float16", "executor": "continuous"},
            replace(
                LEFT_OUT,
                model=replace(
                    LEFT_OUT.model, slots=8, queue=9, max_model_len=100, dtype="float16", executor="continuous"
                ),
            ),
        ),
        ({"enable_in_reasoning": "1"}, replace(LEFT_OUT, model=replace(LEFT_OUT.model, enable_in_reasoning=True))),
        ({"enable_in_reasoning": False}, LEFT_OUT),
        (
            {"tool_parser": "hermes", "stages": "a, b", "max_calls": "7", "announce_calls": "true", "max_held": 5},
            replace(
                LEFT_OUT,
                sieve={
                    "tool_parser": "hermes",
                    "stages": ("a", "b"),
                    "max_calls": 7,
                    "announce_calls": True,
                    "max_held": 5,
                },
            ),
        ),
    ],
)
def test_what_is_given_is_read(arguments: dict[str, Any], expected: RayOptions) -> None:
    assert RayOptions.read({**MODEL, **arguments}, {}) == expected


@pytest.mark.parametrize(("given", "key"), [({}, "environment"), ({"api_key": "argument"}, "argument")])
def test_the_key_of_the_environment(given: dict[str, Any], key: str) -> None:
    assert RayOptions.read({**MODEL, **given}, {"STREAMSIEVE_API_KEY": "environment"}).api_key == key


@pytest.mark.parametrize("value", ["", "a b", "ä"])
def test_a_key_that_cannot_be_sent(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^api_key: must be printable ASCII"):
        RayOptions.read({**MODEL, "api_key": value}, {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slots": "0"}, "slots: a whole number above 0, not '0'"),
        ({"slots": True}, "slots: a whole number above 0, not True"),
        ({"num_replicas": "two"}, "num_replicas: a whole number above 0, not 'two'"),
        ({"num_gpus": "-1"}, "num_gpus: a number from 0, not '-1'"),
        ({"num_gpus": "all"}, "num_gpus: a number from 0, not 'all'"),
        ({"num_cpus": "inf"}, "num_cpus: a number from 0, not 'inf'"),
        ({"num_cpus": True}, "num_cpus: a number from 0, not True"),
        ({"dtype": 16}, "dtype: text, not 16"),
        ({"executor": "slot"}, "executor: unknown name 'slot'. Did you mean 'slots'?"),
        ({"enable_in_reasoning": "perhaps"}, "enable_in_reasoning: unknown name 'perhaps'"),
        ({"tool_parsers": "hermes"}, "option: unknown name 'tool_parsers'. Did you mean 'tool_parser'?"),
        ({"num_replica": 1}, "option: unknown name 'num_replica'. Did you mean 'num_replicas'?"),
        ({"num_replica": "1"}, "option: unknown name 'num_replica'. Did you mean 'num_replicas'?"),
        ({"render_prompt": "x"}, "option: unknown name 'render_prompt'"),
        ({"max_calls": "many"}, "max_calls: a whole number, not 'many'"),
        ({"min_replicas": 2}, "min_replicas: needs max_replicas"),
        ({"num_replicas": 2, "max_replicas": 2}, "num_replicas, max_replicas: give one of them"),
        ({"min_replicas": 3, "max_replicas": 2}, "min_replicas, max_replicas: 3 is more than 2"),
    ],
)
def test_what_cannot_be_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        RayOptions.read({**MODEL, **arguments}, {})
    assert str(raised.value).startswith(message)


def test_a_model_there_must_be() -> None:
    with pytest.raises(ConfigurationError, match=r"^model: is missing"):
        RayOptions.read({"tool_parser": "hermes"}, {})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {},
            {
                "num_replicas": 1,
                "ray_actor_options": {"num_gpus": 1.0, "num_cpus": 1.0},
                "max_ongoing_requests": 64,
                "max_queued_requests": 256,
            },
        ),
        (
            {"min_replicas": 2, "max_replicas": 8, "slots": 16, "queue": 10, "num_gpus": 2},
            {
                "autoscaling_config": {"min_replicas": 2, "max_replicas": 8, "target_ongoing_requests": 12.0},
                "ray_actor_options": {"num_gpus": 2.0, "num_cpus": 1.0},
                "max_ongoing_requests": 16,
                "max_queued_requests": 10,
            },
        ),
    ],
)
def test_what_ray_is_told(arguments: dict[str, Any], expected: dict[str, object]) -> None:
    assert RayOptions.read({**MODEL, **arguments}, {}).deployment() == expected


def test_the_settings_are_those_of_serve(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    options = RayOptions.read({"model": tmp_path, "tool_parser": "hermes"}, {})
    settings = options.settings()
    assert (settings.tool_parser, settings.responses, settings.tokenizer) == ("hermes", "translate", None)
    (tmp_path / "tokenizer.json").write_text('{"added_tokens": [{"id": 7, "content": "<tool_call>", "special": true}]}')
    assert options.settings().tokenizer == tmp_path / "tokenizer.json"


def test_settings_that_cannot_be_are_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    options = RayOptions.read({"model": tmp_path, "tool_parser": "hermse"}, {})
    with pytest.raises(ConfigurationError, match=r"^tool_parser: unknown name 'hermse'"):
        options.settings()


def test_the_page_shows_what_can_be_read() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (kubernetes,), (ray,) = ([list(yaml.safe_load_all(block)) for block in blocks if word in block] for word in WORDS)
    assert [one["kind"] for one in kubernetes] == ["Deployment", "Service"]
    (application,) = ray[0]["applications"]
    assert application["import_path"] == "streamsieve.backends.ray_serve:build"
    options = RayOptions.read(application["args"], {})
    assert (options.replicas, options.most_replicas, options.sieve["tool_parser"]) == (1, 8, "hermes")
    (typed,) = re.findall(r"^serve run streamsieve\S+:build (.*?[^\\])$", PAGE, re.MULTILINE | re.DOTALL)
    words = typed.replace("\\", " ").split()
    assert RayOptions.read(dict(word.split("=", 1) for word in words), {}).replicas == 2


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_it_says_what_to_install() -> None:
    code = "import streamsieve.backends.ray_serve"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("Ray Serve is not installed: pip install 'streamsieve[ray,serve,local]'\n")
