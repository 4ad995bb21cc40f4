"""FunctionGemma 270M: calls in braces, every string between `<escape>` tokens."""

from streamsieve.parsers.arguments.delimited_text import DelimitedText
from streamsieve.parsers.calls.braced import BracedCalls
from streamsieve.parsers.format import Format

FUNCTIONGEMMA = Format(
    name="functiongemma",
    tool_names=("functiongemma",),
    calls=BracedCalls(
        openers=("<start_function_call>",),
        closers=("<end_function_call>",),
        prefixes=("call:",),
        values=DelimitedText("<escape>", undeclared="json"),
    ),
    ends=("<end_of_turn>", "<start_function_response>", "<eos>"),
)

FORMATS = (FUNCTIONGEMMA,)
