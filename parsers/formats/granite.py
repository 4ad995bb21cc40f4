"""IBM Granite: 3.0 to 3.2 (lists of calls, thinking behind a sentence), 20b-functioncalling, 4.0, thinking of 4.2."""

from streamsieve.parsers.calls.json_object import JsonListCalls, JsonObjectCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

_END = "<|end_of_text|>"

GRANITE = Format(
    name="granite",
    tool_names=("granite",),
    reasoning_names=("granite",),
    reasoning=ReasoningSpan(
        pairs=(
            ("Here is my thought process:", "Here is my response:"),
            ("Here's my thought process:", "Here's my response:"),
        ),
        enders=("Here is my response:", "Here's my response:"),
        starts="marked",
        turn_heads=("<|start_of_role|>",),
    ),
    calls=JsonListCalls(openers=("<|tool_call|>", "<tool_call>")),
    ends=(_END,),
)

GRANITE_20B = Format(
    name="granite_20b_fc",
    tool_names=("granite-20b-fc",),
    calls=JsonObjectCalls(openers=("<function_call>",)),
    ends=("<|endoftext|>",),
)

GRANITE4 = Format(
    name="granite4",
    tool_names=("granite4",),
    calls=JsonObjectCalls(openers=("<tool_call>",), closers=("</tool_call>",)),
    ends=(_END,),
)

GRANITE_THINKING = Format(
    name="granite_thinking",
    reasoning_names=("granite_thinking_parser",),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        ends_at_call=True,
        stray_closer="dropped",
        switch=Switch(keys=("enable_thinking",)),
        turn_heads=("<|im_start|>",),
        content_key="force_nonempty_content",
    ),
    ends=("<|im_end|>",),
)

FORMATS = (GRANITE, GRANITE_20B, GRANITE4, GRANITE_THINKING)
