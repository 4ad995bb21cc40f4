"""Phi-4-mini-instruct and Phi-4-multimodal-instruct: a JSON list of calls behind the plain text `functools`."""

from streamsieve.parsers.calls.json_object import CallObject, JsonListCalls
from streamsieve.parsers.format import Format

PHI4_MINI_JSON = Format(
    name="phi4_mini_json",
    tool_names=("phi4_mini_json",),
    calls=JsonListCalls(
        openers=("functools[",), empty="refused", element=CallObject(argument_keys=("arguments", "parameters"))
    ),
    ends=("<|end|>", "<|endoftext|>"),
)

FORMATS = (PHI4_MINI_JSON,)
