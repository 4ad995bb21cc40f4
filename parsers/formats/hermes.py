"""Hermes JSON calls between tags: Hermes 2 Pro and 3, Qwen 2.5 and 3, QwQ; LongCat with tags of its own."""

from streamsieve.parsers.calls.json_object import JsonObjectCalls
from streamsieve.parsers.format import Format

HERMES = Format(
    name="hermes",
    tool_names=("hermes", "qwen3_json", "qwen", "qwen25"),
    calls=JsonObjectCalls(openers=("<tool_call>",), closers=("</tool_call>",)),
    ends=("<|im_end|>", "<|endoftext|>", "<|eot_id|>"),
)

LONGCAT = Format(
    name="longcat",
    tool_names=("longcat",),
    calls=JsonObjectCalls(openers=("<longcat_tool_call>",), closers=("</longcat_tool_call>",)),
    ends=("<longcat_s>", "</longcat_s>"),
)

FORMATS = (HERMES, LONGCAT)
