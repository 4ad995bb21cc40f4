"""Gemma 4: a thinking channel, and calls in braces with every string between `<|"|>` tokens."""

from streamsieve.parsers.arguments.delimited_text import DelimitedText
from streamsieve.parsers.calls.braced import BracedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan

# The channel's label belongs to its opener; the model may leave it out.
_OPENERS = ("<|channel>thought\n", "<|channel>")

GEMMA4 = Format(
    name="gemma4",
    tool_names=("gemma4",),
    reasoning_names=("gemma4",),
    reasoning=ReasoningSpan(
        pairs=tuple((opener, "<channel|>") for opener in _OPENERS),
        starts="marked",
        lost_opener="thought\n",
        reopeners=_OPENERS,
        stray_closer="dropped",
        ends_at_call=True,
        turn_heads=("<|turn>",),
    ),
    calls=BracedCalls(
        openers=("<|tool_call>",),
        closers=("<tool_call|>",),
        prefixes=("call:", ":"),
        brackets=("{", "("),
        closed_name=True,
        values=DelimitedText('<|"|>', undeclared="string"),
    ),
    ends=("<turn|>", "<eos>", "<|tool_response>"),
)

FORMATS = (GEMMA4,)
