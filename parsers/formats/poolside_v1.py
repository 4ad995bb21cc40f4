"""poolside Laguna XS, M and S: GLM's key and value tags; what is no string is JSON or a Python literal."""

from dataclasses import replace

from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.arguments.python_literals import literal
from streamsieve.parsers.arguments.schema_types import JSON, Typing, json_value, parameter_types
from streamsieve.parsers.format import Format
from streamsieve.parsers.formats.glm45 import KEY_VALUE_CALLS
from streamsieve.parsers.reasoning import ReasoningSpan, Switch
from streamsieve.parsers.request import JsonSchema

_STRING = frozenset({"string"})


def _types(parameters: JsonSchema | None, key: str) -> frozenset[str]:
    """Exactly a string, or anything."""
    return _STRING if parameter_types(parameters, key) == _STRING else JSON


def _convert(text: str, types: frozenset[str]) -> str:
    """`text`, trimmed, as the JSON or the Python literal that it is, else as a string."""
    word = text.strip()
    return json_value(word) or literal(word) or f'"{quote(word)}"'


POOLSIDE_V1 = Format(
    name="poolside_v1",
    tool_names=("poolside_v1",),
    reasoning_names=("poolside_v1",),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        switch=Switch(keys=("thinking", "enable_thinking"), default=False),
        turn_heads=("<assistant>",),
    ),
    calls=replace(KEY_VALUE_CALLS, typing=Typing(_types, _convert)),
    ends=("</assistant>",),
)

FORMATS = (POOLSIDE_V1,)
