"""Our formats as parser plugins of vLLM's.

    vllm serve MODEL --tool-parser-plugin streamsieve.parsers.vllm --enable-auto-tool-choice \\
        --tool-call-parser streamsieve_hermes
    vllm serve MODEL --reasoning-parser-plugin streamsieve.parsers.vllm --reasoning-parser streamsieve_qwen3

Importing this registers every name that `streamsieve list` has, those of plugins too, with `streamsieve_`
before it, so that none of vLLM's own names is taken. `hf` is left out: it needs the model's template,
which vLLM's own `hf` reads. Without vLLM importing it does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from streamsieve.parsers import registry
from streamsieve.parsers.format import Format
from streamsieve.parsers.formats.response_template import HF
from streamsieve.parsers.registry import Kind, NameEntry
from streamsieve.parsers.vllm.interface import Interface, ParserClass, load
from streamsieve.parsers.vllm.reasoning import ReasoningMethods
from streamsieve.parsers.vllm.tools import ToolMethods

PREFIX = "streamsieve_"


def register() -> list[str]:
    """Make a class for each of our names and register it with vLLM; returns the names, in order."""
    vllm, listing = load(), registry.listing()
    tools = _register(vllm, "tool", listing["tool"])
    return sorted({*tools, *_register(vllm, "reasoning", listing["reasoning"])})


def _register(vllm: Interface, kind: Kind, entries: Sequence[NameEntry]) -> list[str]:
    names = []
    for entry in entries:
        if "error" in entry:  # a broken plugin breaks its own name only
            continue
        format = registry.named(kind, entry["name"])
        if format is not HF:
            names.append(PREFIX + entry["name"])
            vllm.register(kind, names[-1], _class(vllm, kind, entry["name"], format))
    return names


def _class(vllm: Interface, kind: Kind, name: str, format: Format) -> ParserClass:
    """The subclass of vLLM's base class that reads `format`, chosen by `name`."""
    methods: type = ToolMethods if kind == "tool" else ReasoningMethods
    base = vllm.tool_parser if kind == "tool" else vllm.reasoning_parser
    called = "".join(part.title() for part in name.replace("-", "_").split("_"))
    members = {"format": format, "vllm": vllm, "__module__": __name__}
    return type(f"Streamsieve{called}{kind.title()}Parser", (methods, base), members)


if find_spec("vllm") is not None:
    register()
