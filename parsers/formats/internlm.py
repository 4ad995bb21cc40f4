"""InternLM2 and InternLM2.5 chat: one JSON call in each plugin action; an interpreter action is text."""

from streamsieve.parsers.calls.json_object import CallObject, JsonObjectCalls
from streamsieve.parsers.format import Format

INTERNLM = Format(
    name="internlm",
    tool_names=("internlm",),
    calls=JsonObjectCalls(
        openers=("<|action_start|><|plugin|>",),
        closers=("<|action_end|>",),
        element=CallObject(argument_keys=("parameters", "arguments"), two_arguments="first key"),
        between="",
    ),
    ends=("<|im_end|>",),
)

FORMATS = (INTERNLM,)
