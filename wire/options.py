"""The fields of `Settings` as keywords, for the shells that take them one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from streamsieve.parsers.chain import Stage
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.completions.renderer import Renderer
from streamsieve.wire.dialects import Upstream
from streamsieve.wire.observing.observers import Observer
from streamsieve.wire.routing import Models
from streamsieve.wire.settings import (
    Deliver,
    Enforcement,
    ReasoningField,
    Responses,
    Settings,
    ToolStrictLevel,
    UnknownTools,
)


class Options(TypedDict, total=False):
    """One key for each field of `Settings`, which says what it means and what it is when left out."""

    reasoning_parser: str | None
    tool_parser: str | None
    stages: Sequence[str | Stage]
    reasoning_field: ReasoningField
    deliver: Deliver
    prompt_tail: str | None
    paths: Sequence[str]
    max_body: int
    model: str | None
    response_template: Mapping[str, object] | str | Path | None
    tokenizer: str | Path | None
    unknown_tools: UnknownTools
    max_held: int
    max_calls: int
    announce_calls: bool
    models: Models | str | Path
    header_parsers: Sequence[str]
    responses: Responses
    upstream: Upstream | None
    tool_strict_level: ToolStrictLevel
    enforcement: Enforcement
    render_prompt: Renderer | None
    observers: Sequence[str | Observer]
    capture: str | Path | None
    capture_messages: bool
    shadow: bool


def settings_from(settings: Settings | None, options: Options) -> Settings:
    """`settings` where they are given, else settings with these options; both is a `ConfigurationError`."""
    if settings is None:
        return Settings(**options)
    if options:
        raise ConfigurationError(f"settings: give either settings or {', '.join(options)}, not both")
    return settings
