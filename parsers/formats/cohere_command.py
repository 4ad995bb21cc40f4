"""Cohere Command: A Reasoning (version 3), A Plus and North Mini Code (version 4); citations, and a list of calls."""

from dataclasses import replace

from streamsieve.parsers.calls.json_object import CallObject, JsonListCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan

_RESPONSE, _TEXT = ("<|START_RESPONSE|>", "<|END_RESPONSE|>"), ("<|START_TEXT|>", "<|END_TEXT|>")

_VERSION_3 = ReasoningSpan(
    pairs=(("<|START_THINKING|>", "<|END_THINKING|>"),),
    enders=_RESPONSE[:1],
    answer=(_RESPONSE,),
    starts="marked",
    ends_at_call=True,
    turn_heads=("<|START_OF_TURN_TOKEN|>",),
)

COHERE_COMMAND3 = Format(
    name="cohere_command3",
    tool_names=("cohere_command3",),
    reasoning_names=("cohere_command3",),
    reasoning=_VERSION_3,
    calls=JsonListCalls(
        openers=("<|START_ACTION|>",),
        closers=("<|END_ACTION|>",),
        bare="one",
        element=CallObject(name_key="tool_name", argument_keys=("parameters",), id_key="tool_call_id"),
    ),
    separators=_RESPONSE,  # markers also where the thinking is not read
    annotations=("<co>", "</co:"),
    ends=("<|END_OF_TURN_TOKEN|>",),
)

COHERE_COMMAND4 = replace(
    COHERE_COMMAND3,
    name="cohere_command4",
    tool_names=("cohere_command4",),
    reasoning_names=("cohere_command4",),
    reasoning=replace(_VERSION_3, enders=(_TEXT[0], _RESPONSE[0]), answer=(_TEXT, _RESPONSE), starts="unless answered"),
    separators=(*_TEXT, *_RESPONSE),
)

FORMATS = (COHERE_COMMAND3, COHERE_COMMAND4)
