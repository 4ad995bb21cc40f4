"""Acme models think between `<plan>` tags and write a call as JSON between `<do>` tags."""

from streamsieve.parsers.calls.json_object import JsonObjectCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

ACME = Format(
    name="acme",
    tool_names=("acme",),
    reasoning_names=("acme",),
    reasoning=ReasoningSpan(
        pairs=(("<plan>", "</plan>"),),
        starts="marked",
        ends_at_call=True,
        switch=Switch(keys=("plan",)),
    ),
    calls=JsonObjectCalls(openers=("<do>",), closers=("</do>",)),
    ends=("<|acme_end|>",),
)
