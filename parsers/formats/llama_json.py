"""Llama 3.1 to 3.3 and Llama 4: a call is a bare JSON object, at the start of the reply or of a line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.call_block import CallBlock, any_of
from streamsieve.parsers.calls.json_object import CallObject
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import EndOfText, Markers, Reading

_CLOSER = Markers(("<|python_end|>",))


@dataclass(frozen=True, kw_only=True)
class BareJsonCalls(CallSyntax):
    """JSON objects with nothing round them; `;`, `,`, white space or nothing between two."""

    element: CallObject

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read an object that starts here, and those that follow it."""
        reader = calls.reader
        yield from reader.space()
        yield from self.element.read(calls)
        calls.end()
        while (yield from self._another_comes(calls)):
            yield from self.element.read(calls)
            calls.end()

    def _another_comes(self, calls: CallWriter) -> Reading[bool]:
        """Take what separates two calls, where another follows; else it is text, except `;` and a closing tag."""
        reader = calls.reader
        calls.begin()
        try:
            following = yield from reader.peek_after_space()
            if following in (";", ","):
                reader.position += 1
                if following == ";":
                    calls.begin()
                following = yield from reader.peek_after_space()
            elif (yield from reader.takes(_CLOSER)):
                calls.leave()
                return False
        except EndOfText:
            following = ""
        if following != "{":
            reader.rewind(calls.mark)
            calls.leave()
        return following == "{"

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """The objects on a line of their own."""
        return "\n" + "; ".join(map(self.element.write, calls))

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """Objects at the start of the answer or of a line; in text they are known by the key of the name."""
        start = f'{{"{self.element.name_key}": "'
        return CallBlock(
            opener="\n",
            trigger=f"\n{start}",
            call=any_of(tools, self.element.tag),
            between="; ",
            at_start=(("", ""),),
            starts=(start,),
            openers=self.openers,
        )


LLAMA_JSON = Format(
    name="llama_json",
    tool_names=("llama3_json", "llama4_json", "llama3"),
    calls=BareJsonCalls(
        openers=("<|python_tag|>", "<|python_start|>"),
        answer_starts=("{",),
        line_starts=("{",),
        stops=("\n",),
        element=CallObject(
            argument_keys=("parameters", "arguments"),
            without_arguments="refused",
            others=(("type", "function"), ("id", None)),
        ),
    ),
    ends=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|eom|>"),
)

FORMATS = (LLAMA_JSON,)
