"""Tencent Hunyuan HY-V3 and HY-V4: groups of calls with key and value tags."""

import re
from typing import Literal

from streamsieve.parsers.arguments.schema_types import Typing, convert_or_json, parameter_types
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch
from streamsieve.parsers.request import JsonSchema

_SPELLINGS = (
    ("string", re.compile(r"(?:str|text|varchar|char|enum).*")),
    ("boolean", re.compile(r"bool.*|binary")),
    ("integer", re.compile(r"(?:int|uint|long|short|unsigned).*")),
    ("number", re.compile(r"(?:num|float|double).*")),
    ("array", re.compile(r"list.*")),
    ("object", re.compile(r"(?:dict|map).*")),
)


def _types(parameters: JsonSchema | None, key: str) -> frozenset[str]:
    """The types of a schema, spelled as in any language; null beside others is left out."""
    types = frozenset(map(_type, parameter_types(parameters, key)))
    return types - {"null"} or types


def _type(spelled: str) -> str:
    word = spelled.strip().lower()
    return next((kind for kind, spelling in _SPELLINGS if spelling.fullmatch(word)), word)


def hy(version: Literal[3, 4], token_suffix: str = "") -> Format:
    """The format of HY-V3 or HY-V4 for checkpoints whose markers carry `token_suffix`, such as `:opensource`."""

    def tag(name: str) -> str:
        return f"<{name}{token_suffix}>"

    group, call = (tag("tool_calls"), tag("/tool_calls")), (tag("tool_call"), tag("/tool_call"))
    return Format(
        name=f"hy_v{version}",
        tool_names=(f"hy_v{version}",),
        reasoning_names=(f"hy_v{version}",),
        reasoning=ReasoningSpan(
            pairs=((tag("think"), tag("/think")),),
            switch=Switch(level=("reasoning_effort", "no_think"), default=version == 4),
        ),
        calls=TaggedCalls(
            groups=(group,),
            openers=call[:1],
            closers=call[1:],
            name_close=tag("tool_sep") if version == 3 else "",
            real_at="name" if version == 3 else "parameter",
            parameter=Parameter(
                open=tag("arg_key"),
                key_close=tag("/arg_key"),
                value_open=tag("arg_value"),
                value_close=tag("/arg_value"),
            ),
            ends_unclosed_call=(call[0], *group),
            typing=Typing(_types, convert_or_json),
            space="\n" if version == 3 else "",
            group_holds="all calls",
        ),
    )


FORMATS = (hy(3), hy(4))
