"""`streamsieve parse`: raw model text in, one JSON result out; with `--jsonl` one for each case object."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, Literal

from streamsieve.cli.parser_options import Commands, add_parser_options
from streamsieve.parsers.conformance import cases
from streamsieve.parsers.conformance.cases import Case, CaseError, Way
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.request import Request
from streamsieve.parsers.response_template.file import load_template
from streamsieve.parsers.results import Message

Chunking = int | Literal["whole"]
JsonObject = Mapping[str, object]


def add(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser(
        "parse",
        help="sort raw model text into reasoning, content and tool calls",
        description="Reads FILE, or standard input, as UTF-8. Without --tools calls are parsed all the same; "
        "their values are read as the format reads them where there is no schema.",
    )
    command.set_defaults(run=run)
    command.add_argument("file", metavar="FILE", nargs="?", default="-", help="- is standard input (the default)")
    add_parser_options(command)
    command.add_argument("--tools", metavar="FILE", help="JSON: the list of tools, as in a request")
    command.add_argument(
        "--finish", choices=("stop", "length"), default="stop", help="how the engine ended it (default: %(default)s)"
    )
    command.add_argument(
        "--chunk",
        type=_chunking,
        metavar="whole|char|N",
        help="parse whole, or as a stream of pieces of one or N characters "
        "(default: whole; with --jsonl the case's own chunks, where it has some)",
    )
    command.add_argument(
        "--jsonl",
        action="store_true",
        help="each line is a case object (docs/cli.md) and brings its own parsers, tools, request and finish",
    )


def run(options: argparse.Namespace) -> int:
    """Print the results, each line flushed."""
    with _open(options.file) as source:
        if options.jsonl:
            for line in source:
                if line.strip():
                    _print(_line_result(line, options))
        else:
            _print(_result(_parsed(_text_case(source.read(), options), options)))
    return 0


def _text_case(data: bytes, options: argparse.Namespace) -> Case:
    """The case of a plain text: options in the place of its keys."""
    if options.tools is None:
        request = Request(parse_calls=True, prompt_tail=options.prompt_tail)
    else:
        request = Request.from_body(
            {"tools": _tools(options.tools)}, prompt_tail=options.prompt_tail, unknown_tools=options.unknown_tools
        )
    return Case(
        id="",
        tool_parser=options.tool_parser,
        reasoning_parser=options.reasoning_parser,
        request=request,
        raw=_text(data, options.file),
        chunks=None,
        engine_finish=options.finish,
        expect=None,
        expect_stream=None,
        soft=False,
        ignore=frozenset(),
        forbid=(),
        special=(),
        response_template=load_template(options.response_template) if options.response_template else None,
    )


def _parsed(case: Case, options: argparse.Namespace) -> Message:
    return cases.run(case, _way(case, options.chunk), case.format(), deliver=options.deliver)


def _way(case: Case, chunking: Chunking | None) -> Way:
    if isinstance(chunking, int):
        return cases.in_pieces(case, chunking)
    if chunking is None and case.chunks is not None:
        return Way("own chunks", case.chunks)
    return cases.whole()


def _line_result(line: bytes, options: argparse.Namespace) -> JsonObject:
    try:
        outcome = _result(_parsed(cases.read(line), options))
    except (CaseError, ConfigurationError) as error:
        outcome = {"error": str(error)}
    except Exception as error:  # no parser may raise (rule 12); where a plugin's does, the other lines go on
        outcome = {"error": f"the parser raised {error!r}"}
    return {"id": _id(line), **outcome}


def _id(line: bytes) -> object:
    """The id of a line, where it has one."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields.get("id") if isinstance(fields, dict) else None


def _result(message: Message) -> JsonObject:
    return {
        "reasoning": message.reasoning,
        "content": message.content,
        "tool_calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls],
        "finish_reason": message.finish_reason,
        "repairs": [{"offset": repair.offset, "rule": repair.rule} for repair in message.repairs],
    }


def _print(result: JsonObject) -> None:
    print(json.dumps(result, ensure_ascii=False), flush=True)


def _open(name: str) -> AbstractContextManager[BinaryIO]:
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return open(name, "rb")
    except OSError as error:
        raise ConfigurationError(f"{name}: {error.strerror}") from error


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name}: not UTF-8 at byte {error.start}") from error


def _tools(name: str) -> list[object]:
    tools = _json(name, "tools")
    if not isinstance(tools, list):
        raise ConfigurationError(f"tools: {name} must hold a JSON list, as in a request")
    return tools


def _json(name: str, option: str) -> object:
    with _open(name) as file:
        try:
            value: object = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{option}: {name} is not JSON: {error}") from error
    return value


def _chunking(text: str) -> Chunking:
    if text == "whole":
        return "whole"
    if text == "char":
        return 1
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be whole, char or a number above 0")
    return int(text)
