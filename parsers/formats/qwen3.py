"""Qwen3 XML calls and think tags: Qwen3-Coder, Qwen3.5 and 3.6, Qwen3-Next-Coder, Nemotron 3 (its tools)."""

from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

FUNCTION_XML = TaggedCalls(
    groups=(("<tool_call>", "</tool_call>"),),
    bare_calls="calls",
    group_text="refused",
    openers=("<function=",),
    name_close=">",
    closers=("</function>",),
    parameter=Parameter(open="<parameter=", key_close=">", value_close="</parameter>"),
    line_break="\n",
    ends_unclosed_value=("<parameter=",),
    ends_unclosed_call=("<function=", "<tool_call>", "</tool_call>"),
)

QWEN3_THINKING = ReasoningSpan(
    pairs=(("<think>", "</think>"),),
    ends_at_call=True,
    stray_closer="dropped",
    switch=Switch(keys=("enable_thinking",)),
    turn_heads=("<|im_start|>",),
)

QWEN3 = Format(
    name="qwen3",
    tool_names=("qwen3_coder", "qwen3_xml"),
    reasoning_names=("qwen3", "qwen3-thinking"),
    reasoning=QWEN3_THINKING,
    calls=FUNCTION_XML,
    ends=("<|im_end|>", "<|endoftext|>"),
)

FORMATS = (QWEN3,)
