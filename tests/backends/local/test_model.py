"""Loading: what is refused and why, and what is known of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    GenerationConfig,
    JambaConfig,
    LlamaConfig,
    MambaConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3NextConfig,
)

from streamsieve.backends.local.engine.slot_engine import slot_engine
from streamsieve.backends.local.model.loading import LocalModel, describe, layer_windows, load
from streamsieve.backends.local.model.narrow_linear import NarrowLinear, Way, _columns, fastest_ways
from streamsieve.parsers.errors import ConfigurationError

_SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    config = LlamaConfig(**_SMALL, **_HEADS, max_position_embeddings=128, eos_token_id=2, dtype="float16")
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float16)
    model.generation_config = GenerationConfig(eos_token_id=[2, 5])
    model.save_pretrained(path)
    return path


def make(config: PreTrainedConfig) -> LocalModel:
    return describe(AutoModelForCausalLM.from_config(config))


def test_what_is_known_of_a_folder(folder: Path) -> None:
    stages: list[tuple[str, float]] = []
    model = load(folder, progress=lambda stage, percent: stages.append((stage, percent)))
    assert (model.name, model.vocabulary, model.longest) == (folder.name, 64, 128)
    assert model.eos_token_ids == {2, 5}
    assert model.dtype is torch.float32  # half precision is slow on a CPU
    assert ("loading weights", 100.0) in stages
    assert stages[0][0] == "reading the configuration"


def test_options(folder: Path) -> None:
    model = load(folder, dtype="bfloat16", device="cpu", longest=100)
    assert (model.dtype, model.longest) == (torch.bfloat16, 100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float8"}, r"dtype: unknown name 'float8'.* bfloat16"),
        ({"device": "gpu"}, r"device: unknown name 'gpu'.*cuda"),
        ({"device": "cuda"}, r"device: 'cuda', but torch sees no CUDA"),
        ({"longest": 129}, r"max_model_len: 129 is not from 2 to 128"),
        ({"longest": 1}, r"max_model_len: 1 "),
    ],
)
def test_wrong_options(folder: Path, options: dict[str, str], message: str) -> None:
    if torch.cuda.is_available() and "cuda" in options.values():
        pytest.skip("there is CUDA here")
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        load(folder, **options)  # type: ignore[arg-type]  # some are of the wrong type


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no config.json"),
        ({"a.gguf": "", "b.gguf": ""}, "several .gguf files"),
        ({"config.json": "{}"}, "cannot be loaded"),
        ({"config.json": '{"model_type": "no such"}'}, "cannot be loaded"),
    ],
)
def test_folders_without_a_model(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"neither a folder nor a \.gguf file"):
        load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        (LlamaConfig(**_SMALL, **_HEADS), {"full_attention": None}),
        (Qwen2Config(**_SMALL, **_HEADS, sliding_window=9, use_sliding_window=False), {"full_attention": None}),
        (
            Qwen2Config(**_SMALL, **_HEADS, sliding_window=9, use_sliding_window=True, max_window_layers=1),
            {"full_attention": None, "sliding_attention": 9},
        ),
    ],
)
def test_windows(config: PreTrainedConfig, windows: dict[str, int | None]) -> None:
    assert layer_windows(config) == windows


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param(Qwen3NextConfig(**_SMALL, **_HEADS), "'qwen3_next' has layers of type linear", id="next"),
        pytest.param(MambaConfig(**_SMALL), "'mamba'", id="mamba"),
        pytest.param(JambaConfig(**_SMALL, **_HEADS, use_mamba_kernels=False), "'jamba'", id="jamba"),
        pytest.param(BloomConfig(vocab_size=64, hidden_size=32, n_layer=2, n_head=4), "'bloom'", id="own positions"),
    ],
)
def test_models_that_do_not_fit_are_refused_by_name(config: PreTrainedConfig, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        slot_engine(make(config), rows=2, cache_bytes=2**24)


@pytest.mark.parametrize(
    ("options", "message"), [({"cache_bytes": 1000}, r"max_model_len: one sequence of 2048"), ({"rows": 0}, "slots: 0")]
)
def test_memory_and_slots_that_cannot_be(options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        slot_engine(make(LlamaConfig(**_SMALL, **_HEADS)), **options)


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (16, 1), (17, 1), (2, 3)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "ways",
    [
        pytest.param(None, id="measured"),
        pytest.param([None, *(Way(16, _columns) for _ in range(16))], id="filled up, other way round"),
        pytest.param([None, *(Way(16, torch.nn.functional.linear) for _ in range(16))], id="filled up"),
    ],
)
def test_a_narrow_linear_layer_is_a_linear_layer(shape: tuple[int, int], bias: bool, ways: list[Way | None]) -> None:
    layer, hidden = torch.nn.Linear(32, 100, bias=bias), torch.randn(*shape, 32)
    with torch.inference_mode():
        narrow = NarrowLinear(layer, ways or fastest_ways([layer.weight]))
        torch.testing.assert_close(narrow(hidden), layer(hidden))
