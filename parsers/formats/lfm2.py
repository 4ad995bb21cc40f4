"""LFM2 and LFM2.5: a Python list of calls between special tokens, read with the slips that the model makes in it."""

from streamsieve.parsers.calls.pythonic import PythonicCalls
from streamsieve.parsers.format import Format

LFM2 = Format(
    name="lfm2",
    tool_names=("lfm2",),
    calls=PythonicCalls(
        openers=("<|tool_call_start|>",),
        closers=("<|tool_call_end|>",),
        stray_closer="dropped",
        string_end="quote_and_delimiter",
    ),
    ends=("<|im_end|>",),
)

FORMATS = (LFM2,)
