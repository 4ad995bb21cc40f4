"""A causal language model from a folder or a GGUF file, and what the executors need to know of it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.cache_utils import Cache

from streamsieve.backends.local.model.narrow_linear import tune_linear_layers
from streamsieve.backends.local.model.progress import Progress, reported
from streamsieve.parsers.errors import ConfigurationError, unknown_choice

DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}

_FITTING = frozenset({"full_attention", "sliding_attention"})


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model in memory.

    `vocabulary`: the width of its logits, which may be more than the tokenizer has tokens. `longest`: tokens of a
    sequence. `eos_token_ids`: any of them ends a turn. `windows`: for each type of its layers, how many tokens back
    they see, None for all.
    """

    model: PreTrainedModel
    name: str
    vocabulary: int
    longest: int
    eos_token_ids: frozenset[int]
    windows: Mapping[str, int | None]

    @property
    def device(self) -> torch.device:
        """Where the input goes."""
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        return self.model.dtype

    @property
    def causal_without_mask(self) -> bool:
        """Whether attention among new tokens is causal where no mask is given."""
        return str(self.model.config._attn_implementation) != "eager"

    def cache_argument(self, cache: Cache) -> dict[str, Cache]:
        """`cache` as a keyword argument of a call: transformers 5.24 gave it another name."""
        return {_cache_name(type(self.model)): cache}


def load(
    source: str | os.PathLike[str],
    *,
    dtype: str = "auto",
    device: str = "auto",
    longest: int | None = None,
    progress: Progress = lambda stage, percent: None,
) -> LocalModel:
    """The model in the folder or .gguf file `source`; nothing is fetched.

    `dtype`: one of `DTYPES`, or `auto`: as stored, on a CPU float32 where it has no fast arithmetic for that.
    `device`: as torch names them, or `auto`: CUDA where there is any. `longest`: tokens of a sequence, where the
    model's own limit is too much. Raises ConfigurationError for what cannot be loaded or served.
    """
    path = Path(source)
    folder, gguf = model_files(path)
    where = _device(device)
    progress("reading the configuration", 0.0)
    with refusing(str(path)):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, **gguf)
    text_config = config.get_text_config(decoder=True)
    windows = layer_windows(text_config)
    limit = _longest(text_config, longest)
    precision = _dtype(dtype, text_config, where)
    with reported(progress), refusing(str(path)):
        model = AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=precision, local_files_only=True, **gguf
        )
    progress(f"moving to {where}", 0.0)
    torch.nn.Module.to(model, where)
    if where.type == "cpu":
        _share_cores()
        progress("measuring", 0.0)
        tune_linear_layers(model)
    return describe(model, name=path.stem if gguf else path.name, longest=limit, windows=windows)


def describe(
    model: PreTrainedModel,
    *,
    name: str = "model",
    longest: int | None = None,
    windows: Mapping[str, int | None] | None = None,
) -> LocalModel:
    """A model that is in memory already. Raises ConfigurationError where it has layers that do not fit."""
    config = model.config.get_text_config(decoder=True)
    return LocalModel(
        model=model.train(False),
        name=name,
        vocabulary=config.vocab_size,
        longest=_longest(config, longest),
        eos_token_ids=_eos(model.generation_config, config),
        windows=layer_windows(config) if windows is None else windows,
    )


def layer_windows(config: PreTrainedConfig) -> dict[str, int | None]:
    """How far back each type of a model's layers sees. Raises ConfigurationError, naming those that do not fit."""
    window = getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None)
    if types is None:
        return {"full_attention": None if getattr(config, "use_sliding_window", True) is False else window}
    unfit = sorted(set(types) - _FITTING)
    if unfit:
        raise ConfigurationError(
            f"model: its type {config.model_type!r} has layers of type {', '.join(unfit)}, which this backend "
            f"cannot run; it runs {' and '.join(sorted(_FITTING))}"
        )
    return {name: window if name == "sliding_attention" else None for name in sorted(set(types))}


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Raise ConfigurationError, in which `what` cannot be loaded, for whatever transformers raises then."""
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigurationError(f"model: {what} cannot be loaded: {error}") from error


def model_files(path: Path) -> tuple[Path, dict[str, str]]:
    """The folder, and the argument that names a GGUF file in it."""
    if path.is_file() and path.suffix == ".gguf":
        return path.parent, {"gguf_file": path.name}
    if not path.is_dir():
        raise ConfigurationError(f"model: {path} is neither a folder nor a .gguf file")
    if not (path / "config.json").exists():
        files = sorted(path.glob("*.gguf"))
        if len(files) == 1:
            return path, {"gguf_file": files[0].name}
        raise ConfigurationError(
            f"model: {path} has no config.json" + (" but several .gguf files: name one" if files else "")
        )
    return path, {}


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise unknown_choice("device", name, ["auto", "cpu", "cuda", "cuda:0"]) from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError(f"device: {name!r}, but torch sees no CUDA here; choices: auto, cpu")
    return device


def _dtype(name: str, config: PreTrainedConfig, device: torch.device) -> torch.dtype:
    if name != "auto":
        if name not in DTYPES:
            raise unknown_choice("dtype", name, ["auto", *DTYPES])
        return DTYPES[name]
    stored = config.dtype if isinstance(config.dtype, torch.dtype) else torch.float32
    if device.type != "cpu":
        return stored
    fast = stored is torch.bfloat16 and torch.cpu._is_avx512_bf16_supported()
    return stored if fast else torch.float32


def _longest(config: PreTrainedConfig, asked: int | None) -> int:
    limit = getattr(config, "max_position_embeddings", None) or 4096
    if asked is None:
        return int(limit)
    if not 2 <= asked <= limit:
        raise ConfigurationError(f"max_model_len: {asked} is not from 2 to {limit}, the most that the model can")
    return asked


def _eos(generation: GenerationConfig | None, config: PreTrainedConfig) -> frozenset[int]:
    ids: set[int] = set()
    for source in (generation, config):
        match getattr(source, "eos_token_id", None):
            case int(one):
                ids.add(one)
            case list(several):
                ids.update(several)
    return frozenset(ids)


def _cache_name(model: type[PreTrainedModel]) -> Literal["cache", "past_key_values"]:
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def _share_cores() -> None:
    """Leave one core to the server, where there are more than two and nobody said otherwise."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if "OMP_NUM_THREADS" not in os.environ and cores > 2:
        torch.set_num_threads(cores - 1)
