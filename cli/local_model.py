"""`streamsieve serve --model`: the options of a model that runs here, and how its loading is shown."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, get_args

from streamsieve.backends.local.model.options import ExecutorName, ModelOptions
from streamsieve.cli.parser_options import count
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.settings import Settings

if TYPE_CHECKING:
    from streamsieve.backends.local.server.application import LocalBackend

NEEDED = ("torch", "transformers", "tokenizers", "xgrammar", "prometheus_client", "gguf", "accelerate")
_BAR = 30
_DEFAULTS = {option.name: option.default for option in fields(ModelOptions) if option.name != "source"}


def add_local_options(command: argparse.ArgumentParser) -> None:
    """Add the options that only a model that runs here looks at."""
    group = command.add_argument_group("a model that runs here (--model without --upstream)")
    group.add_argument("--dtype", help="float32, bfloat16, float16 or auto (default: %(default)s)")
    group.add_argument("--device", help="cpu, cuda, cuda:N or auto (default: %(default)s)")
    group.add_argument("--slots", type=count, metavar="N", help="replies that are written at once (default: by device)")
    group.add_argument(
        "--queue",
        type=count,
        metavar="N",
        help="replies that may wait; more get 429 (default: %(default)s)",
    )
    group.add_argument(
        "--max-model-len", type=count, metavar="N", help="tokens of prompt and reply (default: the model's own)"
    )
    group.add_argument(
        "--executor",
        choices=get_args(ExecutorName),
        help="what runs the model; continuous is that of transformers, for CUDA with flash attention (default: "
        "%(default)s)",
    )
    group.add_argument(
        "--enable-in-reasoning", action="store_true", help="what binds the answer binds the thinking too"
    )
    command.set_defaults(**_DEFAULTS)


def runs_here(options: argparse.Namespace) -> bool:
    """Whether `--model` names weights, and no upstream has them: a folder that has a model, or a GGUF file."""
    if options.upstream is not None or options.model is None:
        return False
    path = Path(options.model)
    return path.suffix == ".gguf" or (path / "config.json").is_file() or any(path.glob("*.gguf"))


def refuse_local_options(options: argparse.Namespace) -> None:
    """Raise ConfigurationError for an option that means nothing, since the model does not run here."""
    for name, default in _DEFAULTS.items():
        if getattr(options, name) != default:
            flag = "--" + name.replace("_", "-")
            raise ConfigurationError(
                f"{flag}: only for a model that runs here: --model with its weights, no --upstream"
            )


def own_tokenizer(options: argparse.Namespace) -> Path | None:
    """The `tokenizer.json` of a model that runs here."""
    return model_options(options).tokenizer if runs_here(options) else None


def need_local_extra() -> None:
    """Raise ModuleNotFoundError where the extra `local` is not installed."""
    for name in NEEDED:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def before_loading() -> None:
    """Do what has to be done before torch and transformers are imported. Raises as `need_local_extra` does.

    Nothing is fetched from a hub, and threads sleep while they wait for each other: where they spin, and other
    programs use the same cores, a step takes ten times as long.
    """
    need_local_extra()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def model_options(options: argparse.Namespace) -> ModelOptions:
    """The model that `--model` names, and how it is to run."""
    return ModelOptions(source=Path(options.model), **{name: getattr(options, name) for name in _DEFAULTS})


def local_backend(
    chosen: ModelOptions, settings: Settings, out: TextIO, failed: Callable[[Exception], None] = lambda error: None
) -> LocalBackend:
    """The application. `failed` is told why the model cannot be loaded; the progress is shown on `out`.

    Raises ModuleNotFoundError where the extra `local` is not installed.
    """
    before_loading()
    from streamsieve.backends.local.server.application import LocalBackend
    from streamsieve.backends.local.server.runtime import Runtime

    return LocalBackend(
        lambda progress: Runtime.load(chosen, settings, progress), report=LoadingShown(out).report, failed=failed
    )


class LoadingShown:
    """Shows how far loading is: a bar on a terminal, elsewhere a line for each tenth."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._bars = out.isatty()
        self._stage = ""
        self._tenth = -1
        self._line_open = False

    def report(self, stage: str, percent: float) -> None:
        """Show it. Called on the loading thread only."""
        if stage != self._stage:
            self._end_line()
            self._stage, self._tenth = stage, -1
        tenth = int(percent // 10)
        if self._bars:
            done = round(_BAR * percent / 100)
            self._out.write(f"\r  {'█' * done}{'░' * (_BAR - done)} {percent:3.0f} % {stage}")
            self._line_open = True
        elif tenth > self._tenth:
            self._out.write(f"  {stage}: {percent:.0f} %\n")
        self._tenth = max(tenth, self._tenth)
        if percent >= 100:
            self._end_line()
        self._out.flush()

    def _end_line(self) -> None:
        self._out.write("\n" if self._line_open else "")
        self._line_open = False
