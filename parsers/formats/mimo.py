"""Xiaomi MiMo V2.x: Qwen3's XML calls with verbatim values, and its thinking."""

from dataclasses import replace

from streamsieve.parsers.format import Format
from streamsieve.parsers.formats.qwen3 import FUNCTION_XML, QWEN3

MIMO = replace(
    QWEN3,
    name="mimo",
    tool_names=("mimo",),
    reasoning_names=("mimo",),
    calls=replace(FUNCTION_XML, line_break="", thinking_enders=("<tool_call>",)),
    ends=("<|im_end|>", "<|im_start|>", "<|endoftext|>"),
)

FORMATS: tuple[Format, ...] = (MIMO,)
