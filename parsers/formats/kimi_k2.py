"""Kimi K2 Instruct, K2 Thinking and K2.5: sections of calls whose headers are their ids."""

import re
from dataclasses import dataclass

from streamsieve.parsers.call_ids import kimi_id
from streamsieve.parsers.calls.named_json import NamedJsonCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan, Switch
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.tag_parts import Part, optional, pattern, sequence

_HEADER = re.compile(r"(?:functions\.)?(?P<name>.*?)(?::(?P<number>[0-9]+))?", re.DOTALL)


def header_parts(header: str) -> tuple[str, str | None]:
    """`functions.NAME:NUMBER` as the name and the id; prefix and number may be missing."""
    found = _HEADER.fullmatch(header)
    name, number = found.group("name", "number") if found else (header, None)
    return name, f"functions.{name}:{number}" if number else None


@dataclass(frozen=True, kw_only=True)
class KimiCalls(NamedJsonCalls):
    """Calls whose header is the id that the chat template shows the model again."""

    def write_header(self, call: ToolCall) -> str:
        """The call's own id where that is a Kimi header, else the name."""
        return call.id if header_parts(call.id) == (call.name, call.id) else f"functions.{call.name}"

    def header_tag(self, name: str) -> Part:
        """The name, and the call's number."""
        return sequence(f"functions.{name}", optional(":", pattern("[0-9]{1,4}")))


KIMI_K2 = Format(
    name="kimi_k2",
    tool_names=("kimi_k2",),
    reasoning_names=("kimi_k2",),
    reasoning=ReasoningSpan(
        pairs=(("<think>", "</think>"),),
        ends_at_call=True,
        repeated_opener="dropped",
        stray_closer="dropped",
        switch=Switch(keys=("thinking", "enable_thinking")),
        turn_heads=("<|im_assistant|>",),
    ),
    calls=KimiCalls(
        groups=(("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),),
        openers=("<|tool_call_begin|>",),
        closers=("<|tool_call_end|>",),
        arguments_open="<|tool_call_argument_begin|>",
        header_parts=header_parts,
    ),
    ends=("<|im_end|>", "[EOS]", "[EOT]"),
    call_id=kimi_id,
)

FORMATS = (KIMI_K2,)
