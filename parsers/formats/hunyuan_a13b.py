"""Tencent's Hunyuan-A13B-Instruct: a list of calls between tags, thinking and answer between others; all plain text."""

from streamsieve.parsers.calls.json_object import JsonListCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

HUNYUAN_A13B = Format(
    name="hunyuan_a13b",
    tool_names=("hunyuan_a13b",),
    reasoning_names=("hunyuan_a13b",),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        answer=(("<answer>\n", "\n</answer>"), ("<answer>", "</answer>")),
        starts="marked",
        switch=Switch(keys=("enable_thinking",)),
        turn_heads=("<|extra_0|>", "<|extra_4|>", "<|startoftext|>"),
    ),
    calls=JsonListCalls(openers=("<tool_calls>",), closers=("</tool_calls>",)),
    lead_ins=("助手：",),  # noqa: RUF001  # the colon is the model's
    ends=("<|eos|>",),
)

FORMATS = (HUNYUAN_A13B,)
