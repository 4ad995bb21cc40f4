"""Renders a chat template, in a process of its own: `python -m streamsieve.backends.template_process`.

Standard input is one JSON object, `{"template": source, "jobs": [variables, …]}`; standard output is
one, `{"variables": names, "results": [{"text"} or {"error"}, …]}` or `{"error"}` where the template is
none. A template comes with a model and is foreign code: it runs in Jinja's sandbox, and this process
may not use more time and memory than the limits below.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import jinja2
import jinja2.exceptions
import jinja2.ext
import jinja2.meta
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox
import jinja2.utils

CPU_SECONDS = 5
MEMORY = 1024 * 1024 * 1024
"""Bytes of address space."""
MOST_TEXT = 4 * 1024 * 1024
"""Characters in all results together."""

NOW = datetime(2026, 1, 1, 12)
"""What a template takes for the present, so that two renderings differ only where they should."""


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks what the model writes, for training; here it is only its body."""

    tags = {"generation"}  # noqa: RUF012  # as the base class declares it

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        """Read the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Namespace(jinja2.utils.Namespace):
    """A namespace without names that begin with an underscore, through which sandboxes were left before."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"a template may not set {name!r}")
        super().__setitem__(name, value)


def _raise_exception(message: object) -> None:
    raise jinja2.TemplateError(str(message))


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is, where Jinja's own filter would escape it for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment() -> jinja2.Environment:
    """Jinja as `transformers` sets it up for chat templates (`utils/chat_template_utils.py`, 5.24)."""
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = _tojson
    made.globals["raise_exception"] = _raise_exception
    made.globals["strftime_now"] = NOW.strftime
    made.globals["namespace"] = _Namespace
    return made


def answer(order: Mapping[str, Any]) -> dict[str, object]:
    """What standard output gets for what came on standard input."""
    made = environment()
    try:
        variables = jinja2.meta.find_undeclared_variables(made.parse(order["template"]))
        template = made.from_string(order["template"])
    except (jinja2.TemplateError, RecursionError, SyntaxError, ValueError) as error:
        return {"error": _said(error)}
    results, left = [], MOST_TEXT
    for job in order["jobs"]:
        result = _rendered(template, job, left)
        left -= len(result.get("text", ""))
        results.append(result)
    return {"variables": sorted(variables), "results": results}


def _rendered(template: jinja2.Template, variables: Mapping[str, object], limit: int) -> dict[str, str]:
    pieces: list[str] = []
    try:
        for piece in template.generate(**variables):
            limit -= len(piece)
            if limit < 0:
                return {"error": f"it writes more than {MOST_TEXT} characters"}
            pieces.append(piece)
    except Exception as error:  # foreign code raises what it likes
        return {"error": _said(error)}
    return {"text": "".join(pieces)}


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _limit() -> None:
    try:
        import resource
    except ImportError:  # not on Windows, where only the caller's time limit holds
        return
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    _limit()
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
