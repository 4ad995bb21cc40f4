"""Modules under vLLM's import paths, there only while a plugin file is loaded, and only without vLLM."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

from streamsieve.parsers.vllm_plugins import bases, messages
from streamsieve.parsers.vllm_plugins.text_only import NoTokenizer

_TOKENIZERS = ("PreTrainedTokenizerBase", "PreTrainedTokenizer", "PreTrainedTokenizerFast")


def is_installed() -> bool:
    """Whether vLLM itself is there, which nothing here may hide."""
    return "vllm" in sys.modules or find_spec("vllm") is not None


@contextmanager
def stand_ins() -> Iterator[Mapping[str, type[bases.Registry]]]:
    """Put them in place; gives the two registries that fill meanwhile. Not to be entered twice at once."""
    registries = bases.registries()
    modules = _modules(registries)
    if find_spec("transformers") is None:  # of which most files only want a name for an annotation
        modules["transformers"] = ModuleType("transformers")
        vars(modules["transformers"]).update(dict.fromkeys(_TOKENIZERS, NoTokenizer))
    sys.modules.update(modules)
    try:
        yield registries
    finally:
        for name, module in modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _modules(registries: Mapping[str, type]) -> dict[str, ModuleType]:
    contents: dict[str, Mapping[str, object]] = {}
    for names, paths in _contents(registries):
        for path in paths.split():
            contents[f"vllm.{path}"] = {**contents.get(f"vllm.{path}", {}), **names}
    parents = {path.rsplit(".", level)[0] for path in contents for level in range(1, path.count(".") + 1)}
    modules = {path: ModuleType(path) for path in sorted({*contents, *parents})}
    for path, module in modules.items():
        module.__path__ = []
        vars(module).update(contents.get(path, {}))
        parent, _, name = path.rpartition(".")
        if parent:
            setattr(modules[parent], name, module)
    return modules


def _contents(registries: Mapping[str, type]) -> list[tuple[Mapping[str, object], str]]:
    """What is found where: today's paths of vLLM, and those that plugin files of 2025 still have."""
    reasoning = {"ReasoningParser": bases.ReasoningParser, **_only(registries, "Reasoning")}
    tools = {"ToolParser": bases.ToolParser, "Tool": object, **_only(registries, "Tool")}
    message = {name: kind for name, kind in vars(messages).items() if isinstance(kind, type)}
    ids = {"make_tool_call_id": messages.make_tool_call_id, "random_tool_call_id": messages.make_tool_call_id}
    return [
        (reasoning, "reasoning reasoning.abs_reasoning_parsers"),
        ({"BaseThinkingReasoningParser": bases.BaseThinkingReasoningParser}, "reasoning.basic_parsers reasoning"),
        (
            {"DeepSeekR1ReasoningParser": bases.DeepSeekR1ReasoningParser},
            "reasoning.deepseek_r1_reasoning_parser reasoning",
        ),
        ({"IdentityReasoningParser": bases.IdentityReasoningParser}, "reasoning.identity_reasoning_parser"),
        (
            tools,
            "tool_parsers tool_parsers.abstract_tool_parser entrypoints.openai.tool_parsers "
            "entrypoints.openai.tool_parsers.abstract_tool_parser",
        ),
        (
            {
                "Tool": object,
                "find_common_prefix": _common_prefix,
                "is_complete_json": _is_json,
                "partial_tag_overlap": _overlap,
            },
            "tool_parsers.utils entrypoints.openai.tool_parsers.utils",
        ),
        (
            message,
            "entrypoints.generate.base.protocol entrypoints.openai.engine.protocol entrypoints.openai.protocol "
            "entrypoints.openai.chat_completion.protocol entrypoints.openai.responses.protocol",
        ),
        (ids, "entrypoints.chat_utils renderers.chat_utils"),
        ({"init_logger": logging.getLogger}, "logger"),
        ({"random_uuid": messages.random_uuid}, "utils"),
        ({"TokenizerLike": NoTokenizer}, "tokenizers"),
        ({"AnyTokenizer": NoTokenizer}, "transformers_utils.tokenizer"),
        ({"ToolServer": object}, "entrypoints.mcp.tool_server entrypoints.tool_server"),
        ({"SamplingParams": messages.Fields, "StructuredOutputsParams": messages.Fields}, "sampling_params"),
    ]


def _only(registries: Mapping[str, type], kind: str) -> Mapping[str, type]:
    return {name: registry for name, registry in registries.items() if name.startswith(kind)}


def _common_prefix(first: str, second: str) -> str:
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    return first[:same]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of `text` are a beginning of `tag`, and not all of it."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if tag.startswith(text[-size:])), 0)
