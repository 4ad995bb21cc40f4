"""Ling 3 and Ring 3 (inclusionAI): GLM's key and value tags."""

from dataclasses import replace

from streamsieve.parsers.formats.glm45 import GLM45
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

LING3 = replace(
    GLM45,
    name="ling3",
    tool_names=("ling3",),
    reasoning_names=("ling3",),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        ends_at_call=True,
        stray_closer="dropped",
        switch=Switch(keys=("thinking", "enable_thinking")),
        turn_heads=("<role>ASSISTANT</role>",),
    ),
    ends=("<|role_end|>", "<|endoftext|>"),
)

FORMATS = (LING3,)
