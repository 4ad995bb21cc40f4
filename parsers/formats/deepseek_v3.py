"""DeepSeek V3, R1 and V3.1: JSON calls in blocks of special tokens; R1's thinking; Holo2."""

from dataclasses import replace

from streamsieve.parsers.calls.named_json import NamedJsonCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

ENDS = ("<｜end▁of▁sentence｜>",)

_BLOCK = NamedJsonCalls(
    groups=(("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),),
    openers=("<｜tool▁call▁begin｜>",),
    closers=("<｜tool▁call▁end｜>",),
    arguments_open="<｜tool▁sep｜>",
)
_THINKING = ReasoningSpan(pairs=(("<think>", "</think>"),), turn_heads=("<｜Assistant｜>", "<|im_start|>"))
_BY_REQUEST = replace(_THINKING, switch=Switch(keys=("thinking", "enable_thinking"), default=False))

DEEPSEEK_V3 = Format(
    name="deepseek_v3",
    tool_names=("deepseek_v3", "deepseekv3"),
    reasoning_names=("deepseek_r1", "deepseek-r1"),
    reasoning=_THINKING,
    calls=replace(_BLOCK, prefix="function<｜tool▁sep｜>", arguments_open="```json", arguments_close="```", space="\n"),
    ends=ENDS,
)

DEEPSEEK_V31 = Format(
    name="deepseek_v31",
    tool_names=("deepseek_v31", "deepseekv31"),
    reasoning_names=("deepseek_v3", "deepseek-v3"),
    reasoning=_BY_REQUEST,
    calls=_BLOCK,
    ends=ENDS,
)

HOLO2 = Format(
    name="holo2",
    reasoning_names=("holo2",),
    reasoning=replace(_BY_REQUEST, switch=Switch(keys=("thinking", "enable_thinking"))),
    ends=("<|im_end|>", "<|endoftext|>"),
)

FORMATS = (DEEPSEEK_V3, DEEPSEEK_V31, HOLO2)
