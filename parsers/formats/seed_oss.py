"""ByteDance Seed-OSS: Qwen3's XML calls and thinking in wrappers of its own."""

from dataclasses import replace

from streamsieve.parsers.format import Format
from streamsieve.parsers.formats.qwen3 import FUNCTION_XML
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

_OPEN, _CLOSE = "<seed:tool_call>", "</seed:tool_call>"

SEED_OSS = Format(
    name="seed_oss",
    tool_names=("seed_oss",),
    reasoning_names=("seed_oss",),
    reasoning=ReasoningSpan(
        pairs=(("<seed:think>", "</seed:think>"),),
        stray_closer="dropped",
        framing=("<seed:cot_budget_reflect>", "</seed:cot_budget_reflect>"),
        ends_at_call=True,
        switch=Switch(keys=("enable_thinking",), level=("thinking_budget", 0)),
        turn_heads=("<seed:bos>",),
    ),
    calls=replace(FUNCTION_XML, groups=((_OPEN, _CLOSE),), ends_unclosed_call=("<function=", _OPEN, _CLOSE)),
    ends=("<seed:eos>",),
)

FORMATS = (SEED_OSS,)
