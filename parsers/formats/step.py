"""StepFun: Step 3 (StepTML in blocks of special tokens), Step 3.5 and 3.7 Flash and Step 5 (Qwen3's XML)."""

from dataclasses import replace

from streamsieve.parsers.calls.labels import QUOTED
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.formats.qwen3 import FUNCTION_XML, QWEN3_THINKING
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

_BEGIN, _END = "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"
_CALL = "<｜tool_call_begin｜>"

STEP3 = Format(
    name="step3",
    tool_names=("step3",),
    reasoning_names=("step3",),
    reasoning=ReasoningSpan(pairs=(("<think>", "</think>"),), turn_heads=("<|BOT|>",)),
    calls=TaggedCalls(
        groups=((_BEGIN, _END),),
        openers=(_CALL,),
        closers=("<｜tool_call_end｜>",),
        prefix=("function", "<｜tool_sep｜>", "<steptml:invoke name="),
        label=QUOTED,
        name_close=">",
        body=("", "</steptml:invoke>"),
        parameter=Parameter(
            open="<steptml:parameter name=", label=QUOTED, key_close=">", value_close="</steptml:parameter>"
        ),
        ends_unclosed_call=(_CALL, _BEGIN, _END),
        trim="space",
        space="",
        group_holds="all calls",
    ),
    ends=("<|EOT|>",),
)

STEP3P5 = Format(
    name="step3p5",
    tool_names=("step3p5",),
    reasoning_names=("step3p5",),
    reasoning=replace(QWEN3_THINKING, switch=Switch()),
    calls=FUNCTION_XML,
    ends=("<|im_end|>",),
)

STEP5 = Format(
    name="step5",
    tool_names=("step5",),
    reasoning_names=("step5",),
    reasoning=ReasoningSpan(pairs=(("<think>", "</think>"),), turn_heads=("<|im_start|>",)),
    calls=FUNCTION_XML,
    ends=("<|im_end|>",),
)

FORMATS = (STEP3, STEP3P5, STEP5)
