"""Pythonic call lists: Llama 3.2, ToolACE (`pythonic`), Llama 4, and Olmo 3 with tags and thinking."""

from streamsieve.parsers.calls.pythonic import PythonicCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan

_ENDS = ("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "<|im_end|>", "<|endoftext|>")

PYTHONIC = Format(name="pythonic", tool_names=("pythonic",), calls=PythonicCalls(answer_starts=("[",)), ends=_ENDS)

LLAMA4_PYTHONIC = Format(
    name="llama4_pythonic",
    tool_names=("llama4_pythonic",),
    calls=PythonicCalls(answer_starts=("[", "<|python_start|>"), wrapper=("<|python_start|>", "<|python_end|>")),
    ends=_ENDS,
)

OLMO3 = Format(
    name="olmo3",
    tool_names=("olmo3",),
    reasoning_names=("olmo3",),
    reasoning=ReasoningSpan(pairs=(("<think>", "</think>"),), turn_heads=("<|im_start|>",)),
    calls=PythonicCalls(openers=("<function_calls>",), closers=("</function_calls>",), brackets="none"),
    ends=_ENDS,
)

FORMATS = (PYTHONIC, LLAMA4_PYTHONIC, OLMO3)
