"""Preferred Networks' PLaMo 3: nested plain-text tags round thinking, calls, their names and their arguments."""

from streamsieve.parsers.calls.named_json import NamedJsonCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch


def _tag(name: str) -> str:
    return f"<|plamo:{name}:plamo|>"


_ARGUMENTS, _MESSAGE = _tag("begin_tool_arguments"), "<|plamo:msg|>"

PLAMO3 = Format(
    name="plamo3",
    tool_names=("plamo3",),
    reasoning_names=("plamo3",),
    reasoning=ReasoningSpan(
        pairs=((_tag("begin_think"), _tag("end_think")),),
        reopeners=(_tag("begin_think"),),
        stray_closer="dropped",
        ends_at_call=True,
        switch=Switch(keys=("enable_thinking",)),
        turn_heads=("<|plamo:tag|>",),
    ),
    calls=NamedJsonCalls(
        groups=((_tag("begin_tool_requests"), _tag("end_tool_requests")),),
        openers=(_tag("begin_tool_request"),),
        closers=(_tag("end_tool_request"),),
        prefix=_tag("begin_tool_name"),
        name_close=_tag("end_tool_name"),
        arguments_open=f"{_ARGUMENTS}<|plamo:constrain|>json{_MESSAGE}",
        other_opens=(f"{_ARGUMENTS}{_MESSAGE}",),
        arguments_close=_tag("end_tool_arguments"),
    ),
    ends=("<|plamo:tag|>",),
)

FORMATS = (PLAMO3,)
