"""MiniMax M2, M2.1 and M2.5 (thinking open from the start, or not split off), and M3 (nested arguments)."""

from streamsieve.parsers.calls.elements import ElementCalls
from streamsieve.parsers.calls.labels import ANY_QUOTES
from streamsieve.parsers.calls.parameter import Parameter
from streamsieve.parsers.calls.tagged import TaggedCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch

_SECTION = ("<minimax:tool_call>", "</minimax:tool_call>")

MINIMAX_M2 = Format(
    name="minimax_m2",
    tool_names=("minimax_m2", "minimax-m2"),
    reasoning_names=("minimax_m2", "minimax"),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),), ends_at_call=True, stray_closer="dropped", turn_heads=("]~b]ai",)
    ),
    calls=TaggedCalls(
        groups=(_SECTION,),
        bare_calls="calls",
        thinking_enders=_SECTION[:1],
        openers=("<invoke name=",),
        closers=("</invoke>",),
        label=ANY_QUOTES,
        name_close=">",
        parameter=Parameter(open="<parameter name=", label=ANY_QUOTES, key_close=">", value_close="</parameter>"),
        ends_unclosed_value=("<parameter name=",),
        ends_unclosed_call=("<invoke name=", *_SECTION),
        group_holds="all calls",
    ),
    ends=("[e~[",),
)

MINIMAX_M2_APPEND_THINK = Format(
    name="minimax_m2_append_think",
    reasoning_names=("minimax_m2_append_think", "minimax-append-think"),
    reasoning=ReasoningSpan(pairs=(("<think>", "</think>"),), starts="restored"),
    ends=MINIMAX_M2.ends,
)

_MARK = "]<]minimax[>["
"""Stands before every tag of M3."""

MINIMAX_M3 = Format(
    name="minimax_m3",
    tool_names=("minimax_m3",),
    reasoning_names=("minimax_m3",),
    reasoning=ReasoningSpan(
        pairs=(("<mm:think>", "</mm:think>"),),
        starts="anywhere",
        opened_by=("thinking_mode", "enabled"),
        leading="closer",
        switch=Switch(level=("thinking_mode", "disabled")),
        turn_heads=("]~b]ai",),
    ),
    calls=ElementCalls(
        groups=((f"{_MARK}<tool_call>", f"{_MARK}</tool_call>"),),
        openers=(f"{_MARK}<invoke name=",),
        closers=(f"{_MARK}</invoke>",),
        prefix=_MARK,
        label=ANY_QUOTES,
    ),
    ends=("[e~[",),
)

FORMATS = (MINIMAX_M2, MINIMAX_M2_APPEND_THINK, MINIMAX_M3)
