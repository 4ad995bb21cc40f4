"""A response template as a file: one of its own, or the `tokenizer_config.json` that a checkpoint ships."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from streamsieve.parsers.errors import ConfigurationError


def load_template(path: str | Path) -> Mapping[str, object]:
    """The template in this JSON file, or under the key `response_template` in it, or in a folder's configuration.

    Raises ConfigurationError where there is none.
    """
    file = Path(path)
    file = file / "tokenizer_config.json" if file.is_dir() else file
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"response_template: {file}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"response_template: {file} is not JSON: {error}") from error
    template = read.get("response_template", read) if isinstance(read, dict) else None
    if not isinstance(template, dict):
        raise ConfigurationError(f"response_template: {file} must hold a JSON object")
    return template
