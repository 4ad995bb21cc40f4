"""Baidu's ERNIE 4.5 Thinking and VL: JSON calls between tags, think tags, and optional tags round the answer."""

from streamsieve.parsers.calls.json_object import JsonObjectCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan

ERNIE45 = Format(
    name="ernie45",
    tool_names=("ernie45",),
    reasoning_names=("ernie45",),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        answer=(("<response>", "</response>"),),
        turn_heads=("<|im_start|>",),
    ),
    calls=JsonObjectCalls(openers=("<tool_call>",), closers=("</tool_call>",)),
    ends=("<|im_end|>", "</s>"),
)

FORMATS = (ERNIE45,)
