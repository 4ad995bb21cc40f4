"""The options of `serve` that bound one reply, choose by model, tell of exchanges, and say who may ask."""

from __future__ import annotations

import argparse
import logging

from streamsieve.cli.parser_options import count
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.completions.renderer import Renderer
from streamsieve.wire.observing.log_line import LOGGER
from streamsieve.wire.options import Options


def add_server_options(command: argparse.ArgumentParser) -> None:
    """Add the limits, and the flags that say what is asked how, by the model and the headers, and who may ask."""
    command.add_argument("--max-body", type=count, metavar="BYTES", help="longer bodies and events pass unparsed")
    command.add_argument(
        "--max-held", type=count, metavar="CHARACTERS", help="a choice that holds back more goes on as text"
    )
    command.add_argument(
        "--max-calls", type=count, metavar="NUMBER", help="calls of one choice; later ones are left out"
    )
    command.add_argument(
        "--announce-calls",
        action="store_true",
        help="streams tell of each complete call once more, in an event of its own",
    )
    command.add_argument("--models", metavar="FILE", help="TOML: options that differ by the request's model")
    command.add_argument(
        "--header-parser",
        metavar="NAME",
        action="append",
        default=[],
        help="a parser that a request may choose by its headers (docs/options.md); repeatable",
    )
    command.add_argument(
        "--responses",
        choices=("parse", "translate"),
        help="how the Responses API is served: the upstream has it, or is asked by chat completions (default: parse "
        "with --upstream, else translate)",
    )
    command.add_argument(
        "--observe",
        choices=("log", "metrics", "telemetry"),
        action="append",
        default=[],
        help="log: a line on standard error for each exchange; metrics: Prometheus, at /metrics; telemetry: attributes "
        "of the current OpenTelemetry span; repeatable",
    )
    command.add_argument("--capture", metavar="FILE", help="add every reply to this file of cases, with its raw text")
    command.add_argument("--capture-messages", action="store_true", help="with the text of the request's messages too")
    command.add_argument(
        "--shadow", action="store_true", help="the upstream sorts; only compare (see --observe and --capture)"
    )
    command.add_argument(
        "--render-prompt",
        action="store_true",
        help="render the chat template of --model here; the upstream is only asked for completions",
    )
    command.add_argument(
        "--cors-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="browsers may ask from pages of this origin, '*' for any; repeatable",
    )
    command.add_argument(
        "--read-timeout",
        type=count,
        metavar="SECONDS",
        help="how long the upstream may send nothing (default: 600)",
    )


def server_options(options: argparse.Namespace) -> Options:
    """Those that are fields of `Settings`; what is left out stays as it is there."""
    given: Options = {
        "announce_calls": options.announce_calls,
        "header_parsers": options.header_parser,
        "observers": list(dict.fromkeys(options.observe)),
        "capture": options.capture,
        "capture_messages": options.capture_messages,
        "shadow": options.shadow,
    }
    if options.max_body is not None:
        given["max_body"] = options.max_body
    if options.max_held is not None:
        given["max_held"] = options.max_held
    if options.max_calls is not None:
        given["max_calls"] = options.max_calls
    if options.render_prompt:
        given["render_prompt"] = _renderer(options)
    # What we serve by ourselves has chat completions only.
    given["responses"] = options.responses or ("translate" if options.upstream is None else "parse")
    if options.models is not None:
        given["models"] = options.models
    return given


def log_to_stderr() -> None:
    """Show the lines of the observer "log": bare, one JSON object each."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger(LOGGER)
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)


def _renderer(options: argparse.Namespace) -> Renderer:
    from streamsieve.backends.prompt_renderer import prompt_renderer

    if options.model is None or options.upstream is None:
        raise ConfigurationError("--render-prompt: needs --upstream, and --model for its chat template")
    return prompt_renderer(options.model)
