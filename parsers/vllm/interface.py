"""What of vLLM our plugin classes are made of, found where the installed version has it.

The names and signatures are those of vLLM 0.33 (`vllm/reasoning/abs_reasoning_parsers.py`,
`vllm/tool_parsers/abstract_tool_parser.py`). This package runs without vLLM, so nothing of it is
imported to be looked at: what is needed of a class is said in a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Protocol

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.registry import Kind

ParserClass = type
Make = Callable[..., object]
"""One of vLLM's message classes; made with keywords, and handed back to vLLM as it is."""

_PROTOCOLS = (
    "vllm.entrypoints.generate.base.protocol",  # 0.33; the others are of earlier versions
    "vllm.entrypoints.openai.engine.protocol",
    "vllm.entrypoints.openai.protocol",
)


class Tokenizer(Protocol):
    """What is needed of a tokenizer."""

    def decode(self, ids: Sequence[int]) -> str: ...


class _Manager(Protocol):
    def register_module(self, name: str, force: bool, module: ParserClass) -> object: ...


@dataclass(frozen=True)
class Interface:
    """vLLM's base classes, message classes and registries.

    `tools_in_use`: the format of the tool parser that was made last, if one of ours was. A server has one
    for all its requests, and what a call looks like says where thinking may end without its closer.
    """

    reasoning_parser: ParserClass
    tool_parser: ParserClass
    delta_message: Make
    delta_tool_call: Make
    delta_function_call: Make
    extracted_tool_calls: Make
    tool_call: Make
    function_call: Make
    _managers: dict[Kind, _Manager]
    tools_in_use: list[Format] = field(default_factory=list)

    def register(self, kind: Kind, name: str, parser: ParserClass) -> None:
        """Let vLLM find `parser` by `name`, instead of one that was registered by it before."""
        self._managers[kind].register_module(name=name, force=True, module=parser)


def load() -> Interface:
    """Import what is needed. Raises ConfigurationError where the installed version has it elsewhere."""
    try:
        reasoning = import_module("vllm.reasoning")
        tools = import_module("vllm.tool_parsers.abstract_tool_parser")
        messages = _messages()
        return Interface(
            reasoning_parser=reasoning.ReasoningParser,
            tool_parser=tools.ToolParser,
            delta_message=messages.DeltaMessage,
            delta_tool_call=messages.DeltaToolCall,
            delta_function_call=messages.DeltaFunctionCall,
            extracted_tool_calls=messages.ExtractedToolCallInformation,
            tool_call=messages.ToolCall,
            function_call=messages.FunctionCall,
            _managers={
                "reasoning": reasoning.ReasoningParserManager,
                "tool": import_module("vllm.tool_parsers").ToolParserManager,
            },
        )
    except (ModuleNotFoundError, AttributeError) as error:
        raise ConfigurationError(
            f"vllm: this version has no plugin interface that streamsieve knows: {error}"
        ) from error


def _messages() -> ModuleType:
    for path in _PROTOCOLS[:-1]:
        try:
            return import_module(path)
        except ModuleNotFoundError:
            continue
    return import_module(_PROTOCOLS[-1])
