"""`streamsieve serve`: recorded replies, another server, or a model that runs here, with the middleware on top."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from streamsieve.cli.local_model import (
    add_local_options,
    local_backend,
    model_options,
    own_tokenizer,
    refuse_local_options,
    runs_here,
)
from streamsieve.cli.parser_options import Commands, add_parser_options, count
from streamsieve.cli.server_options import add_server_options, log_to_stderr, server_options
from streamsieve.cli.upstream_options import add_upstream_options, upstream_options
from streamsieve.parsers import registry
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.rules import AUTO
from streamsieve.wire.options import Options
from streamsieve.wire.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

API_KEY = "STREAMSIEVE_API_KEY"
UPSTREAM_API_KEY = "STREAMSIEVE_UPSTREAM_API_KEY"


def add(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser(
        "serve",
        help="serve recorded replies or a local model, or put streamsieve in front of an OpenAI-compatible server",
        description="With --model, a folder or GGUF file with weights, the model runs here; with neither that nor "
        "--upstream the server plays recorded raw replies (models: GET /v1/models).",
    )
    command.set_defaults(run=run)
    command.add_argument("--upstream", metavar="URL", help="the OpenAI-compatible server to stand in front of")
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    command.add_argument("--port", type=_port, default=8000, help="0 takes a free one (default: %(default)s)")
    add_parser_options(command)
    command.add_argument(
        "--model",
        metavar="PATH",
        help="the model (folder, .gguf or .jinja file, name): finds parsers called auto, checks the others; without "
        "--upstream, one that has weights is run here",
    )
    command.add_argument(
        "--allow-misfit", action="store_true", help="start with parsers that contradict the model's chat template"
    )
    command.add_argument(
        "--tokenizer",
        metavar="PATH",
        help="its tokenizer.json, or the folder that has it: markers that are only typed are text, with token_ids",
    )
    for kind in ("reasoning", "tool"):
        command.add_argument(
            f"--{kind}-parser-plugin",
            metavar="FILE_OR_MODULE",
            help=f"a file or module that registers {kind} parsers as vLLM has it, for --{kind}-parser to choose from",
        )
    command.add_argument(
        "--enable-auto-tool-choice", action="store_true", help="accepted as vLLM has it; needs a tool parser"
    )
    command.add_argument(
        "--stage", metavar="NAME", action="append", default=[], help="run this stage after the parser; repeatable"
    )
    command.add_argument(
        "--reasoning-field",
        choices=("reasoning", "reasoning_content", "both"),
        default="reasoning",
        help="the field that carries the reasoning (default: %(default)s)",
    )
    command.add_argument("--api-key", metavar="KEY", help=f"clients must send it (default: {API_KEY}, where set)")
    command.add_argument(
        "--upstream-api-key",
        metavar="KEY",
        help=f"sent upstream instead of the client's (default: {UPSTREAM_API_KEY}, where set)",
    )
    command.add_argument("--replay", metavar="FILE", help="play the replies of this file of cases, by their ids")
    command.add_argument("--chunk", type=count, default=4, help="recorded replies: characters in a delta")
    command.add_argument("--delay", type=_seconds, default=0.0, help="recorded replies: seconds before each delta")
    add_upstream_options(command)
    add_server_options(command)
    add_local_options(command)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    import uvicorn

    from streamsieve.backends.application import application
    from streamsieve.cli.draining_server import DrainingServer

    _load_plugins(options)
    settings = _settings(options)
    failures: list[Exception] = []

    def give_up(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    local = local_backend(model_options(options), settings, sys.stderr, give_up) if runs_here(options) else None
    backend = local or _backend(options)
    api_key = _key("api_key", options.api_key, API_KEY)
    app = application(backend, settings, api_key=api_key, cors_origins=options.cors_origin)
    config = uvicorn.Config(
        app,
        log_level="warning",
        # The upstream's own are passed on.
        server_header=False,
        date_header=options.upstream is None,
        timeout_graceful_shutdown=5,
    )
    if "log" in settings.observers:
        log_to_stderr()
    server = DrainingServer(config, local.drain) if local else uvicorn.Server(config)
    listener = _listener(options.host, options.port)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"streamsieve: {_source(options)} on http://{shown}:{port}/v1, {_reading(settings)}", file=sys.stderr)
    with suppress(KeyboardInterrupt):  # the usual way to end it
        server.run(sockets=[listener])
    if failures:
        raise failures[0]
    return 0


def _listener(host: str, port: int) -> socket.socket:
    """Listening before it is announced, so that who connects at once is served when the server has started."""
    from streamsieve.backends.listener import listening

    try:
        return listening(host, port)
    except OSError as error:
        raise ConfigurationError(f"host, port: cannot listen on {host} port {port}: {error.strerror}") from error


def _load_plugins(options: argparse.Namespace) -> None:
    """vLLM's parser plugins, before any name is looked up; one file may be given for both kinds."""
    from streamsieve.parsers.vllm_plugins.loading import load

    given = {
        "reasoning_parser_plugin": options.reasoning_parser_plugin,
        "tool_parser_plugin": options.tool_parser_plugin,
    }
    for source in dict.fromkeys(filter(None, given.values())):
        load(source, next(option for option, value in given.items() if value == source))


def _settings(options: argparse.Namespace) -> Settings:
    if options.enable_auto_tool_choice and options.tool_parser in (None, "none"):
        names = ", ".join(entry["name"] for entry in registry.listing()["tool"])
        raise ConfigurationError(f"--enable-auto-tool-choice: --tool-parser is missing. Choices: {names}")
    given: Options = {
        "reasoning_parser": options.reasoning_parser,
        "tool_parser": options.tool_parser,
        "stages": options.stage,
        "reasoning_field": options.reasoning_field,
        "deliver": options.deliver,
        "prompt_tail": options.prompt_tail,
        "tokenizer": options.tokenizer or own_tokenizer(options),
        "unknown_tools": options.unknown_tools,
        "response_template": options.response_template,
        **upstream_options(options),
        **server_options(options),
    }
    if options.model is None:
        if AUTO in (options.tool_parser, options.reasoning_parser):
            raise ConfigurationError("--tool-parser, --reasoning-parser: 'auto' needs --model")
        return Settings(**given)
    return _fitting(options, given)


def _fitting(options: argparse.Namespace, given: Options) -> Settings:
    """The settings with `auto` replaced, and the parsers held to the chat template of the model."""
    from streamsieve.backends.detection import NothingFits, settings_for

    try:
        return settings_for(options.model, given)
    except NothingFits as error:
        if AUTO in (options.tool_parser, options.reasoning_parser):
            raise
        if not options.allow_misfit:
            raise ConfigurationError(f"{error}\n  --allow-misfit starts all the same") from error
        print(f"streamsieve serve: warning: {error}", file=sys.stderr)
        return Settings(**given)


def _backend(options: argparse.Namespace) -> ASGIApp:
    refuse_local_options(options)
    if options.upstream is None:
        from streamsieve.backends.recording import captured
        from streamsieve.backends.replay import replay

        library = None if options.replay is None else captured(options.replay)
        return replay(chunk=options.chunk, delay=options.delay, library=library)
    from streamsieve.backends.upstream import READ_TIMEOUT, Upstream

    return Upstream(
        options.upstream,
        api_key=_key("upstream_api_key", options.upstream_api_key, UPSTREAM_API_KEY),
        read_timeout=options.read_timeout or READ_TIMEOUT,
    )


def _key(option: str, given: str | None, variable: str) -> str | None:
    key = os.environ.get(variable) or None if given is None else given
    if key is not None:
        from streamsieve.backends.application import check_key

        check_key(option, key)
    return key


def _source(options: argparse.Namespace) -> str:
    if options.upstream is not None:
        return f"in front of {options.upstream}"
    if options.model is None:
        return "recorded replies"
    return str(options.model) if runs_here(options) else f"recorded replies, as {options.model} has no weights here,"


def _reading(settings: Settings) -> str:
    if settings.format is None:
        return "no parser chosen: text stays as the backend writes it"
    return f"reading {settings.format.name}"


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} must be from 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 60:
        raise argparse.ArgumentTypeError(f"{text!r} must be seconds from 0 to 60")
    return seconds
