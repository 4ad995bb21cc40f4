"""Loads a file or module of vLLM parser plugins and lets their names choose them.

`--reasoning-parser-plugin` and `--tool-parser-plugin` take either kind, as in vLLM: what counts is what
the file registers.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from streamsieve.parsers import registry
from streamsieve.parsers.call_ids import random_id
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.registry import Kind
from streamsieve.parsers.request import Request
from streamsieve.parsers.vllm_plugins.reply import PluginReply
from streamsieve.parsers.vllm_plugins.sources import ReasoningSource, ToolSource
from streamsieve.parsers.vllm_plugins.stand_ins import is_installed, stand_ins
from streamsieve.parsers.vllm_plugins.text_only import NoTokenizer

_TRIAL = "Hello.\n"
_OURS: set[str] = set()
"""Modules that came with plugins that were loaded by name."""


def load(source: str, option: str) -> Sequence[str]:
    """Run `source`, a file's path or a module's name, and add the parsers it registers; returns their names.

    Raises ConfigurationError, naming `option`, where it cannot be loaded, registers nothing, or has a parser
    that needs more than text. A file is run each time; its names then stand for what it registers now.
    """
    found = _registered(source, option)
    if not any(found.values()):
        raise ConfigurationError(f"{option}: {source} registers no parser with vLLM's parser managers")
    for kind, parsers in found.items():
        for name, parser in parsers.items():
            _try(kind, parser, f"{option}: parser {name!r} of {source} cannot be used here")
    for kind, parsers in found.items():
        for names in _same(parsers):
            registry.add(kind, _format(kind, names, parsers[names[0]]), names, source)
    return [name for parsers in found.values() for name in parsers]


def _registered(source: str, option: str) -> Mapping[Kind, Mapping[str, type]]:
    try:
        return _with_vllm(source) if is_installed() else _without_vllm(source)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        why = "for which streamsieve has no stand-in" if missing.startswith("vllm") else "which is not installed"
        if missing and source.startswith(missing):
            raise ConfigurationError(f"{option}: {source!r} is neither a file nor a module") from error
        raise ConfigurationError(f"{option}: {source} imports {missing}, {why}") from error
    except Exception as error:  # a foreign module may fail in any way
        raise ConfigurationError(f"{option}: {source} cannot be loaded: {type(error).__name__}: {error}") from error


def _without_vllm(source: str) -> Mapping[Kind, Mapping[str, type]]:
    with stand_ins() as registries:
        _run(source)
    return {
        "reasoning": dict(registries["ReasoningParserManager"].parsers),
        "tool": dict(registries["ToolParserManager"].parsers),
    }


def _with_vllm(source: str) -> Mapping[Kind, Mapping[str, type]]:
    """What is new in the managers of the vLLM that is installed, whose own parsers ours stand for."""
    reasoning = import_module("vllm.reasoning").ReasoningParserManager
    tools = import_module("vllm.tool_parsers").ToolParserManager
    before = {*reasoning.list_registered()}, {*tools.list_registered()}
    _run(source)
    return {
        "reasoning": {
            name: reasoning.get_reasoning_parser(name) for name in {*reasoning.list_registered()} - before[0]
        },
        "tool": {name: tools.get_tool_parser(name) for name in {*tools.list_registered()} - before[1]},
    }


def _run(source: str) -> ModuleType:
    """Import a file or module anew."""
    path = Path(source)
    if not path.is_file():
        for name in _OURS & sys.modules.keys():
            if name == source or name.startswith(f"{source}."):
                del sys.modules[name]  # what it registered then is gone
        before = set(sys.modules)
        module = import_module(source)
        _OURS.update(sys.modules.keys() - before)
        return module
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _try(kind: Kind, parser: type, refusal: str) -> None:
    """Let a parser read a word, streamed and whole: a first look at whether text is enough for it."""
    tokenizer = NoTokenizer()
    request = Request.from_body({"tools": [{"function": {"name": "ping"}}]})
    made = ToolSource if kind == "tool" else ReasoningSource
    try:
        for whole in (False, True):
            source = made(parser, request, whole=whole, tokenizer=tokenizer)
            source.feed(_TRIAL)
            source.finish("stop")
            if source.error:
                raise source.error
    except Exception as error:  # a foreign parser may fail in any way
        if not tokenizer.asked_for:
            raise ConfigurationError(f"{refusal}: {type(error).__name__}: {error}") from error
    if tokenizer.asked_for:
        raise ConfigurationError(
            f"{refusal}: it asks for {tokenizer.asked_for[0]}, and only parsers that look at text alone can be"
        )


def _same(parsers: Mapping[str, type]) -> Iterable[Sequence[str]]:
    """The names, those of one class together."""
    names: dict[type, list[str]] = {}
    for name, parser in parsers.items():
        names.setdefault(parser, []).append(name)
    return names.values()


def _format(kind: Kind, names: Sequence[str], parser: type) -> Format:
    if kind == "tool":
        return Format(name=names[0], tool_names=tuple(names), messages=PluginReply(tools=parser), call_id=_own_id)
    return Format(name=names[0], reasoning_names=tuple(names), messages=PluginReply(reasoning=parser))


def _own_id(name: str, number: int, native: str | None) -> str:
    """The id that the parser gave the call, if it did."""
    return native or random_id(name, number, None)
