"""Which settings one request is read by: by its model, and where that is allowed by its headers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from streamsieve.parsers import registry
from streamsieve.parsers.errors import ConfigurationError, unknown_choice
from streamsieve.parsers.rules import AUTO
from streamsieve.wire.request.refusal import Refused

if TYPE_CHECKING:
    from streamsieve.wire.settings import Settings

Models = Mapping[str, Mapping[str, object]]
"""The name of a model, or a pattern of names (`*`, `?`, `[…]`), to the options that differ for it."""

TOOL_HEADER, REASONING_HEADER = b"x-streamsieve-tool-parser", b"x-streamsieve-reasoning-parser"
"""The request headers that choose parsers by name, where `header_parsers` has the name."""

_OF_ALL = frozenset({"models", "header_parsers", "paths", "max_body"})
"""The options that are needed before the model is known."""


@dataclass(frozen=True)
class Route:
    """What is read by other options than the rest: the models whose name is, or matches, `pattern`."""

    pattern: str
    options: Mapping[str, object]

    def settings(self, others: Settings, model: str) -> Settings:
        """`others` with this route's options, for this model, which `auto` goes by; raises ConfigurationError."""
        options = {"models": {}, **self.options}
        if self.goes_by_model:
            options.setdefault("model", model)
        return replace(others, **options)  # type: ignore[arg-type]  # Settings checks them

    @property
    def goes_by_model(self) -> bool:
        """Whether its settings differ from model to model."""
        return AUTO in (self.options.get("tool_parser"), self.options.get("reasoning_parser"))


def routes(models: Models | str | Path, others: Settings) -> tuple[Route, ...]:
    """The routes of the option `models`, or of the TOML file that has them, each tried once.

    Raises ConfigurationError for what cannot work, and names the pattern.
    """
    if isinstance(models, str | Path):
        models = _load(Path(models))
    if not isinstance(models, Mapping) or not all(isinstance(options, Mapping) for options in models.values()):
        raise ConfigurationError("models: model names or patterns with options for each, or a TOML file of such tables")
    found = tuple(Route(pattern, dict(options)) for pattern, options in models.items())
    for route in found:
        _check(route, others)
    return found


def for_model(settings: Settings, model: object) -> Settings:
    """The settings for a request of this model. The exact name counts before patterns, these in their order.

    Raises Refused where the route says `auto` and no rule knows the name.
    """
    if not settings.routes or not isinstance(model, str):
        return settings
    exact = [route for route in settings.routes if route.pattern == model]
    matching = exact or [route for route in settings.routes if fnmatchcase(model, route.pattern)]
    if not matching:
        return settings
    route = matching[0]
    try:
        return _routed(settings, settings.routes.index(route), model if route.goes_by_model else "")
    except ConfigurationError as error:
        raise Refused(str(error), "model") from error


def for_headers(settings: Settings, headers: Sequence[tuple[bytes, bytes]]) -> Settings:
    """The settings with the parsers that the request's headers choose; raises Refused where they may not."""
    if not settings.header_parsers:
        return settings
    given = {name: value.decode("latin-1").strip() for name, value in headers}
    for header in (TOOL_HEADER, REASONING_HEADER):
        if given.get(header, "none") not in ("none", *settings.header_parsers):
            allowed = ", ".join(settings.header_parsers)
            raise Refused(f"{header.decode()}: {given[header]!r} is not allowed here. Choices: none, {allowed}")
    chosen = given.get(TOOL_HEADER), given.get(REASONING_HEADER)
    if chosen == (None, None):
        return settings
    try:
        return _with_parsers(settings, *chosen)
    except ConfigurationError as error:
        raise Refused(str(error)) from error


def check_header_parsers(names: Sequence[str]) -> None:
    """Raise ConfigurationError for a name that is no parser's."""
    if not names:
        return  # listing loads every plugin
    listed = registry.listing()
    known = {entry["name"] for kind in ("tool", "reasoning") for entry in listed[kind]}
    for name in names:
        if name not in known:
            raise unknown_choice("header_parsers", name, sorted(known))


@lru_cache(maxsize=256)
def _routed(settings: Settings, route: int, model: str) -> Settings:
    return settings.routes[route].settings(settings, model)


@lru_cache(maxsize=256)
def _with_parsers(settings: Settings, tool: str | None, reasoning: str | None) -> Settings:
    return replace(
        settings,
        tool_parser=settings.tool_parser if tool is None else tool,
        reasoning_parser=settings.reasoning_parser if reasoning is None else reasoning,
    )


def _check(route: Route, others: Settings) -> None:
    known = {one.name for one in fields(others) if one.init} - _OF_ALL
    for option in route.options:
        if option not in known:
            raise unknown_choice(f"models[{route.pattern!r}]", option, sorted(known))
    plain = {name: None if value == AUTO else value for name, value in route.options.items()}
    try:
        Route(route.pattern, plain).settings(others, "")
    except ConfigurationError as error:
        raise ConfigurationError(f"models[{route.pattern!r}]: {error}") from error


def _load(file: Path) -> Models:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"models: {file}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"models: {file}: {error}") from error
