"""GLM key and value tags: GLM-4.5, 4.5-Air, 4.6 (newlines between the parts), GLM-4.7 and 5.x (none); both are read."""

from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

KEY_VALUE_CALLS = TaggedCalls(
    openers=("<tool_call>",),
    closers=("</tool_call>",),
    parameter=Parameter(open="<arg_key>", key_close="</arg_key>", value_open="<arg_value>", value_close="</arg_value>"),
)

GLM45 = Format(
    name="glm45",
    tool_names=("glm45", "glm47", "glm"),
    reasoning_names=("glm45", "glm47"),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        ends_at_call=True,
        repeated_opener="dropped",
        stray_closer="dropped",
        switch=Switch(keys=("enable_thinking", "thinking")),
        turn_heads=("<|assistant|>",),
    ),
    calls=KEY_VALUE_CALLS,
    ends=("<|user|>", "<|observation|>", "<|endoftext|>"),
)

FORMATS = (GLM45,)
