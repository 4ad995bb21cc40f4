"""Sber's GigaChat 3 (a call is a message of its own) and 3.1 (a call has a token of its own); one call a reply."""

from streamsieve.parsers.calls.json_object import CallObject, JsonObjectCalls
from streamsieve.parsers.format import Format

_SEPARATOR = "<|message_sep|>"

GIGACHAT3 = Format(
    name="gigachat3",
    tool_names=("gigachat3",),
    calls=JsonObjectCalls(
        openers=("<|function_call|>", "function call<|role_sep|>"),
        element=CallObject(controls="escaped"),
        calls_in_reply="one",
    ),
    separators=(_SEPARATOR, f"{_SEPARATOR}\n", f"{_SEPARATOR}\n\n"),
    ends=("</s>",),
)

FORMATS = (GIGACHAT3,)
