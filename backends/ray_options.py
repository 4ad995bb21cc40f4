"""What `serve run streamsieve.backends.ray_serve:build` is told, and what Ray is told of it. Needs no Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from streamsieve.backends.application import check_key
from streamsieve.backends.detection import settings_for
from streamsieve.backends.local.model.options import ExecutorName, ModelOptions
from streamsieve.parsers.errors import ConfigurationError, unknown_choice
from streamsieve.wire.options import Options
from streamsieve.wire.settings import Settings, option_from_text

API_KEY = "STREAMSIEVE_API_KEY"
"""The variable that is read where no `api_key` is given."""

SLOTS = 64
"""Requests that a replica gets at once where `slots` are not given."""

_BUSY = 0.75
"""Of the slots that are taken on average, above which autoscaling adds replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayOptions:
    """A model and its parsers, as `streamsieve serve` has them, and how many replicas run it on what.

    `sieve`: what is given of the middleware's options. `most_replicas`: None for always `replicas`, else Ray keeps
    their number between the two. `num_gpus`, `num_cpus`: of one replica.
    """

    model: ModelOptions
    sieve: Options
    api_key: str | None = None
    replicas: int = 1
    most_replicas: int | None = None
    num_gpus: float
    num_cpus: float

    @classmethod
    def read(cls, arguments: Mapping[str, object], environ: Mapping[str, str] = os.environ) -> RayOptions:
        """From names and values, which may be text, as on a command line: those of `ModelOptions`, with `model` for
        the source; those of `Settings`; `api_key`; `num_replicas`, or `min_replicas` and `max_replicas`;
        `num_gpus` (1, on `device` cpu 0) and `num_cpus` (1). Raises ConfigurationError for any other.
        """
        own = {name: _READERS[name](name, value) for name, value in arguments.items() if name in _READERS}
        sieve = {name: _sieve_option(name, value) for name, value in arguments.items() if name not in _READERS}
        if "model" not in own:
            raise ConfigurationError("model: is missing; model=PATH names a folder or a GGUF file")
        api_key = cast("str | None", own.get("api_key", environ.get(API_KEY) or None))
        if api_key is not None:
            check_key("api_key", api_key)
        running = {name: own[name] for name in _RUNNING if name in own}
        replicas, most = _replicas(own)
        return cls(
            model=ModelOptions(source=Path(str(own["model"])), **running),  # type: ignore[arg-type]  # by `_READERS`
            sieve=cast("Options", sieve),
            api_key=api_key,
            replicas=replicas,
            most_replicas=most,
            num_gpus=cast("float", own.get("num_gpus", 0.0 if own.get("device") == "cpu" else 1.0)),
            num_cpus=cast("float", own.get("num_cpus", 1.0)),
        )

    def settings(self) -> Settings:
        """The middleware's, held to the model's chat template. Raises ConfigurationError as `settings_for` does."""
        given: Options = {"responses": "translate", "tokenizer": self.model.tokenizer}
        return settings_for(str(self.model.source), {**given, **self.sieve})

    def deployment(self) -> dict[str, object]:
        """For `Deployment.options`: a replica gets what it can write at once, and what waits does so in front."""
        slots = self.model.slots or SLOTS
        scale: dict[str, object] = {"num_replicas": self.replicas}
        if self.most_replicas is not None:
            scale = {
                "autoscaling_config": {
                    "min_replicas": self.replicas,
                    "max_replicas": self.most_replicas,
                    "target_ongoing_requests": max(1.0, slots * _BUSY),
                }
            }
        return {
            **scale,
            "ray_actor_options": {"num_gpus": self.num_gpus, "num_cpus": self.num_cpus},
            "max_ongoing_requests": slots,
            "max_queued_requests": self.model.queue,
        }


def _replicas(own: Mapping[str, object]) -> tuple[int, int | None]:
    if "max_replicas" not in own:
        if "min_replicas" in own:
            raise ConfigurationError("min_replicas: needs max_replicas; num_replicas is for a fixed number")
        return cast("int", own.get("num_replicas", 1)), None
    if "num_replicas" in own:
        raise ConfigurationError("num_replicas, max_replicas: give one of them")
    least, most = cast("int", own.get("min_replicas", 1)), cast("int", own["max_replicas"])
    if least > most:
        raise ConfigurationError(f"min_replicas, max_replicas: {least} is more than {most}")
    return least, most


def _text(name: str, value: object) -> str:
    if not isinstance(value, str | os.PathLike):
        raise ConfigurationError(f"{name}: text, not {value!r}")
    return os.fspath(value)


def _executor(name: str, value: object) -> str:
    if value not in get_args(ExecutorName):
        raise unknown_choice(name, value, get_args(ExecutorName))
    return str(value)


def _count(name: str, value: object) -> int:
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ConfigurationError(f"{name}: a whole number above 0, not {value!r}")
    return number


def _share(name: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigurationError(f"{name}: a number from 0, not {value!r}")
    return number


def _switch(name: str, value: object) -> bool:
    switches = {"true": True, "1": True, "false": False, "0": False}
    if str(value).lower() not in switches:
        raise unknown_choice(name, value, switches)
    return switches[str(value).lower()]


_RUNNING: Mapping[str, Callable[[str, object], object]] = {
    "dtype": _text,
    "device": _text,
    "slots": _count,
    "queue": _count,
    "max_model_len": _count,
    "executor": _executor,
    "enable_in_reasoning": _switch,
}
_READERS: Mapping[str, Callable[[str, object], object]] = {
    "model": _text,
    "api_key": _text,
    **_RUNNING,
    "num_replicas": _count,
    "min_replicas": _count,
    "max_replicas": _count,
    "num_gpus": _share,
    "num_cpus": _share,
}


def _sieve_option(name: str, value: object) -> object:
    """Text is read; what is none is checked where the settings are made."""
    if name not in Options.__annotations__:
        raise unknown_choice("option", name, [*_READERS, *Options.__annotations__])
    return option_from_text(name, value) if isinstance(value, str) else value
