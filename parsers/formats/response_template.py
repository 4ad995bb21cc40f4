"""`hf`: whatever a checkpoint's own response template describes (Gemma 4, Kolibri 1 and others)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.messages import MessageSyntax
from streamsieve.parsers.request import Request
from streamsieve.parsers.response_template.reply import TemplateMessages
from streamsieve.parsers.response_template.template import FieldName, read_template
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import Reading
from streamsieve.parsers.trays import Trays

_FIELD_OF: dict[Literal["tool", "reasoning"], FieldName] = {"tool": "tool_calls", "reasoning": "thinking"}


@dataclass(frozen=True, kw_only=True)
class NoTemplate(MessageSyntax):
    """The place of a template that is not given."""

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Raises ConfigurationError, which says what is missing."""
        raise _missing()

    def write(self, message: Message, request: Request) -> str:
        """Raises ConfigurationError, which says what is missing."""
        raise _missing()


HF = Format(name="response_template", tool_names=("hf",), reasoning_names=("hf",), messages=NoTemplate())
"""What the name `hf` stands for until a template is given."""

FORMATS: tuple[Format, ...] = ()
"""None without a template."""


def templated(
    format: Format | None, template: Mapping[str, object] | None, kind: Literal["tool", "reasoning"]
) -> Format | None:
    """`format`, or where it is `HF` the format that `template` describes; `kind` is what it was chosen for.

    Raises ConfigurationError where the template is missing, lacks the field for that, or is wrong.
    """
    if format is not HF:
        return format
    if template is None:
        raise _missing()
    try:
        made = _made(json.dumps(template))
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"response_template: not JSON: {error}") from error
    if _FIELD_OF[kind] not in template.get("fields", {}):  # type: ignore[operator]  # it was read, so it is a mapping
        raise ConfigurationError(
            f"response_template: fields: {_FIELD_OF[kind]} is missing, which {kind}_parser 'hf' needs"
        )
    return made


@lru_cache(maxsize=64)
def _made(template: str) -> Format:
    return replace(HF, messages=TemplateMessages(template=read_template(json.loads(template))))


def _missing() -> ConfigurationError:
    return ConfigurationError(
        "response_template: missing; the parser 'hf' reads replies by the response_template "
        "of the checkpoint's tokenizer_config.json"
    )
