"""The application while its model loads, when it cannot be loaded, when its engine dies, and when it stops."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from streamsieve.backends.local.engine.engine import Health
from streamsieve.backends.local.model.loading import describe
from streamsieve.backends.local.model.progress import Progress
from streamsieve.backends.local.server.application import LocalBackend
from streamsieve.backends.local.server.runtime import ModelOptions, Runtime
from streamsieve.backends.local.server.tokenizer import Tokenizer
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.settings import Settings
from tests.backends.local.waiting import wait_until

ASK: Any = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}


@pytest.fixture
def runtime(tiny_model: Qwen3ForCausalLM, byte_tokenizer: PreTrainedTokenizerFast) -> Runtime:
    options = ModelOptions(source=None, slots=2)  # type: ignore[arg-type]  # it is in memory
    return Runtime.of(describe(tiny_model, name="tiny"), Tokenizer(byte_tokenizer), options, Settings())


def test_loading_is_told_until_it_is_done(runtime: Runtime) -> None:
    halfway, go_on = threading.Event(), threading.Event()
    told: list[tuple[str, float]] = []

    def load(progress: Progress) -> Runtime:
        progress("loading weights", 45.2)
        halfway.set()
        assert go_on.wait(20)
        return runtime

    with TestClient(LocalBackend(load, report=lambda stage, percent: told.append((stage, percent)))) as client:
        assert halfway.wait(20)
        health = client.get("/health")
        assert health.status_code == 503
        assert health.json() == {"status": "loading", "stage": "loading weights", "percent": 45.2}
        for answer in (client.post("/v1/chat/completions", json=ASK), client.get("/v1/models")):
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "model_loading"
            assert "loading weights, 45 %" in answer.json()["error"]["message"]
            assert int(answer.headers["retry-after"]) > 0
        assert client.get("/metrics").status_code == 200
        go_on.set()
        wait_until(lambda: client.get("/health").status_code == 200)
        assert client.get("/health").json() == {"status": "ready", "running": 0, "queued": 0}
        assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    assert told == [("loading weights", 45.2), ("ready", 100.0)]
    assert runtime.engine.health is Health.DEAD


def test_a_model_that_cannot_be_loaded() -> None:
    failures: list[Exception] = []

    def load(progress: Progress) -> Runtime:
        raise ConfigurationError("model: no")

    backend = LocalBackend(load, failed=failures.append)
    with TestClient(backend) as client:
        wait_until(lambda: bool(failures))
        assert (client.get("/health").status_code, client.get("/health").json()) == (503, {"status": "failed"})
        assert client.post("/v1/chat/completions", json=ASK).json()["error"]["code"] == "model_not_loaded"
    assert backend.failure is failures[0]


def test_an_engine_that_is_dead(runtime: Runtime) -> None:
    with TestClient(LocalBackend(lambda progress: runtime)) as client:
        wait_until(lambda: client.get("/health").status_code == 200)
        runtime.engine.stop()
        assert (client.get("/health").status_code, client.get("/health").json()) == (503, {"status": "dead"})
        answer = client.post("/v1/chat/completions", json=ASK)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_dead")


def test_a_server_that_stops_before_the_model_is_there(runtime: Runtime) -> None:
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def load(progress: Progress) -> Runtime:
        begun.set()
        assert go_on.wait(20)
        done.set()
        return runtime

    with TestClient(LocalBackend(load)):
        assert begun.wait(20)
    go_on.set()
    assert done.wait(20)
    wait_until(lambda: runtime.engine.health is Health.DEAD)


def test_a_model_without_a_chat_template(runtime: Runtime) -> None:
    bare = replace(runtime, template=None)
    with TestClient(LocalBackend(lambda progress: bare)) as client:
        wait_until(lambda: client.get("/health").status_code == 200)
        answer = client.post("/v1/chat/completions", json=ASK)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")
        assert client.post("/v1/completions", json={"prompt": "x", "max_tokens": 2}).status_code == 200
