"""Jamba 1.5 Mini and Large: a JSON list of calls between tags."""

from streamsieve.parsers.calls.json_object import JsonListCalls
from streamsieve.parsers.format import Format

JAMBA = Format(
    name="jamba",
    tool_names=("jamba",),
    calls=JsonListCalls(openers=("<tool_calls>",), closers=("</tool_calls>",)),
    ends=("<|endoftext|>", "<|eom|>"),
)

FORMATS = (JAMBA,)
