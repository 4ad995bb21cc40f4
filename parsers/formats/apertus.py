"""Swiss AI's Apertus Instruct: a list of JSON objects whose one key is the function's name."""

from dataclasses import dataclass

from streamsieve.parsers.arguments.json_text import copy_json, quote, read_string
from streamsieve.parsers.call_writer import CallWriter
from streamsieve.parsers.calls.json_object import JsonListCalls
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import Malformed, Reading
from streamsieve.parsers.tag_parts import JsonObject, arguments, sequence


@dataclass(frozen=True)
class NameAsKey:
    """`{name: arguments}`."""

    def read(self, calls: CallWriter) -> Reading[None]:
        """Take the object. It is a call once the brace of its value is there."""
        reader = calls.reader
        yield from reader.take("{")
        yield from reader.space()
        name = yield from read_string(reader)
        yield from reader.space()
        yield from reader.take(":")
        if (yield from reader.peek_after_space()) != "{":
            raise Malformed
        calls.start(name)
        yield from copy_json(reader, calls.arguments)
        yield from reader.space()
        yield from reader.take("}")

    def write(self, call: ToolCall) -> str:
        """The call as the format writes it."""
        return f'{{"{quote(call.name)}": {call.arguments}}}'

    def tag(self, name: str, schema: JsonSchema) -> JsonObject:
        """The grammar of a call of `name`, whose arguments follow `schema`."""
        return sequence(f'{{"{quote(name)}": ', arguments(schema), "}")


APERTUS = Format(
    name="apertus",
    tool_names=("apertus",),
    calls=JsonListCalls(openers=("<|tools_prefix|>",), closers=("<|tools_suffix|>",), bare="one", element=NameAsKey()),
    ends=("<|assistant_end|>",),
)

FORMATS = (APERTUS,)
