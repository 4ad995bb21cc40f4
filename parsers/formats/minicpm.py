"""MiniCPM5 (calls in function and param tags) and MiniCPM-V 4.x and 5 (thinking; their calls are `qwen3_coder`)."""

import re

from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.arguments.python_literals import literal
from streamsieve.parsers.arguments.schema_types import Typing, convert_or_json
from streamsieve.parsers.calls.labels import Label
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.line_breaks import LineBreaks
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

_NAME = Label(quotes="\"'", attribute="name", space=re.compile(r"[\sĠĊ]*"))
"""The tokenizer's own letters for a space and a line break may stand in tags."""


def _convert(text: str, types: frozenset[str]) -> str:
    """`text` by its types, else, where no string is meant, as JSON or as a Python literal."""
    converted = convert_or_json(text, types)
    if "string" in types or converted != f'"{quote(text)}"':
        return converted
    return literal(text.strip()) or converted


MINICPM5 = Format(
    name="minicpm5",
    tool_names=("minicpm5",),
    calls=TaggedCalls(
        openers=("<function",),
        closers=("</function>",),
        label=_NAME,
        name_close=">",
        body=("<arguments>", "</arguments>"),
        parameter=Parameter(
            open="<param", label=_NAME, key_close=">", value_close="</param>", verbatim=("<![CDATA[", "]]>")
        ),
        ends_unclosed_call=("<function",),
        typing=Typing(convert=_convert),
        space="",
    ),
    ends=("<|im_end|>",),
)

MINICPMV = Format(
    name="minicpmv",
    reasoning_names=("minicpmv",),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        leading="empty pair",
        ends_at_call=True,
        switch=Switch(keys=("enable_thinking",)),
        turn_heads=("<|im_start|>",),
    ),
    rewriting=LineBreaks,
    ends=(
        "<|im_end|>",
        *(tag for number in range(12, 16) for tag in (f"<reserved_{number}>", f"<|reserved_{number}|>")),
    ),
)

FORMATS = (MINICPM5, MINICPMV)
