"""Calls with their parameters between tags, the values raw text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from streamsieve.parsers.arguments.json_text import JSON_SPECIAL
from streamsieve.parsers.arguments.object_writer import HeldValue, ObjectWriter, RawValue, Trim
from streamsieve.parsers.arguments.schema_types import BY_SCHEMA, Typing, is_plain_string, write_json
from streamsieve.parsers.call_writer import NAME, CallState, CallWriter
from streamsieve.parsers.calls.call_block import CallBlock, any_of
from streamsieve.parsers.calls.labels import BARE, Label
from streamsieve.parsers.calls.parameter import Head, Parameter
from streamsieve.parsers.calls.parameter_tags import parameters
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import ToolCall
from streamsieve.parsers.scanner import EndOfText, Malformed, Markers, Plain, Reader, Reading, Search
from streamsieve.parsers.tag_parts import JsonObject, Part, behind, optional, sequence


@dataclass(frozen=True, kw_only=True)
class TaggedCalls(CallSyntax):
    """`OPENER [prefix] name [name_close] [body] { parameter } [body] CLOSER`; the closer is the first of `closers`.

    A value ends at its closing tag only where another tag of the call, or the end, follows that
    (contract, "How arguments are read"); `ends_unclosed_value` are tags that end one without.
    `ends_unclosed_call`: what may come instead of the call's closer.
    `prefix`: what stands between the opener and the name, white space between its parts framing.
    `body`: tags that may stand round all parameters, either of them empty where there is none.
    `real_at`: what makes a call real: the end of its name; or behind that the beginning of a parameter's
    tag, or the whole of its head; or the end of the call.
    `repeated_key`: what a key that came before is, written again or a call gone wrong.
    `trim`: what white space round a value is markup. `line_break`: one that belongs to the tags on
    either side of a value where it stands. `space`: what the format writes between parts.
    `group_holds`: how many calls it writes in a group.
    """

    parameter: Parameter
    prefix: tuple[str, ...] = ()
    label: Label = BARE
    name_close: str = ""
    body: tuple[str, str] = ("", "")
    real_at: Literal["name", "parameter", "head"] = "parameter"
    repeated_key: Literal["written", "refused"] = "written"
    typing: Typing = BY_SCHEMA
    trim: Trim = "none"
    ends_unclosed_value: tuple[str, ...] = ()
    ends_unclosed_call: tuple[str, ...] = ()
    line_break: str = ""
    space: str = "\n"
    group_holds: Literal["one call", "all calls"] = "one call"

    def read(self, calls: CallWriter, opener: str) -> Reading[None]:
        """Read one call, its opener taken."""
        yield from self.read_arguments(calls, (yield from self.read_name(calls.reader, opener)))

    def read_arguments(self, calls: CallWriter, name: str) -> Reading[None]:
        """Read what stands behind the name of a call, through its closer."""
        tags = _tags(self, calls.ends, calls.boundaries)
        if self.real_at == "name":
            calls.start(name)
        yield from calls.reader.space()
        yield from calls.reader.takes(tags.body_open)
        tag = yield from self._next(calls, tags.between)
        schema = calls.request.tools.get(name)
        head = None
        if self.real_at == "head" and tag in self.parameter.opens:
            head = yield from self._head(calls.reader, tag, schema)
        if self.real_at != "name":
            calls.start(name)
        arguments = ObjectWriter(calls.arguments)
        space = yield from self._parameters(calls, arguments, tags, tag, schema, head)
        arguments.close()
        calls.end()
        if space:
            calls.text(space)

    def read_name(self, reader: Reader, opener: str) -> Reading[str]:
        """Take the name and what stands round it, through `name_close`."""
        before = opener
        for literal in self.prefix:
            yield from reader.space()
            yield from reader.take_tag(literal)
            before = literal
        if not self.label.quotes:
            yield from reader.space()
        name = yield from self.label.read(reader, before, NAME, NAME)
        if self.name_close.startswith("<"):
            yield from reader.space()
        yield from reader.take_tag(self.name_close)
        return name

    def _parameters(
        self,
        calls: CallWriter,
        arguments: ObjectWriter,
        tags: _Tags,
        tag: str,
        schema: JsonSchema | None,
        head: Head | None,
    ) -> Reading[str]:
        """Read the parameters, the first tag being seen or its `head` taken, and the call's closer; returns the
        white space taken behind that."""
        reader = calls.reader
        keys: set[str] = set()
        while tag in self.parameter.opens:
            key, types = head or (yield from self._head(reader, tag, schema))
            head = None
            if key in keys and self.repeated_key == "refused":
                raise Malformed
            keys.add(key)
            value = self._value(arguments, key, types)
            closer, space = yield from self._read_value(reader, value, tags)
            if closer in self.closers:
                return space
            tag = self.body[1] if closer else (yield from self._next(calls, tags.between))
        if tag and tag == self.body[1]:
            reader.position += len(tag) if (yield from reader.sees(tags.body_close)) else 0
            tag = yield from self._next(calls, tags.after_body)
        if tag in self.closers:
            reader.position += len(tag)
        else:
            calls.unclosed()
        return ""

    def _head(self, reader: Reader, tag: str, schema: JsonSchema | None) -> Reading[Head]:
        """Take a parameter's tag, which comes, and what stands between it and the value."""
        reader.position += len(tag)
        return (yield from self.parameter.read_head(reader, tag, schema, self.typing))

    def _next(self, calls: CallWriter, tags: Markers) -> Reading[str]:
        """Which of `tags` comes, unread; empty where the reply may end here."""
        reader, real = calls.reader, calls.state is CallState.REAL
        yield from reader.space()
        tag = yield from reader.sees(tags)
        if tag is not None and (real or tag in self.closers or tag not in calls.ends):
            return tag
        if not reader.may_end and not reader.ends_within(tags):
            raise Malformed
        if reader.cut or not real:
            raise EndOfText
        return ""

    def _value(self, arguments: ObjectWriter, key: str, types: frozenset[str]) -> RawValue:
        if is_plain_string(types):
            return arguments.open_string(key, self.trim)
        return HeldValue(arguments, key, types, self.trim, self.typing.convert)

    def _read_value(self, reader: Reader, value: RawValue, tags: _Tags) -> Reading[tuple[str, str]]:
        """Read one value. Where the closer of the call or of its body ends it, that is taken too, and returned
        with the white space behind it."""
        plain = Plain(tags.plain, value.json) if value.json else None
        try:
            if (yield from reader.takes(tags.verbatim)):
                if (yield from reader.find(tags.verbatim_end, value.text)) is None:
                    raise EndOfText
                value.close()
                return "", ""
            yield from reader.takes(tags.line_break)
            while found := (yield from reader.find(tags.in_value, value.text, plain)):
                tag = found.removeprefix(self.line_break)
                if tag in self.ends_unclosed_value:
                    reader.position -= len(tag)
                    value.close()
                    return "", ""
                space = yield from reader.space()
                if (yield from reader.sees(tags.after[tag])) is not None or reader.may_end:
                    value.close()
                    return ("", "") if tag in self.parameter.closes else (tag, space)
                value.text(found + space)
            raise EndOfText
        except EndOfText:
            value.cut()
            raise

    def write(self, calls: Sequence[ToolCall], request: Request) -> str:
        """One block a call, in its group where the format has groups."""
        written = [self.write_call(call) for call in calls]
        if not self.groups:
            return self.space.join(written)
        if self.group_holds == "all calls":
            written = [self.space.join(written)]
        opener, closer = self.groups[0]
        return self.space.join(f"{opener}{self.space}{call}{self.space}{closer}" for call in written)

    def write_call(self, call: ToolCall) -> str:
        """One call from its opener through its closer."""
        return self.write_behind(self.write_name(call.name), call)

    def write_behind(self, opening: str, call: ToolCall) -> str:
        """One call, `opening` being what comes before its parameters."""
        parts = [opening]
        for key, value in json.loads(call.arguments).items():
            text = value if isinstance(value, str) else write_json(value)
            text = f"{self.line_break}{text}{self.line_break}"
            parts.append(self.parameter.write(key, value, text, self.space))
        return self.space.join([*parts, *self._written_closers])

    def write_name(self, name: str) -> str:
        """A call from its opener through what closes its name."""
        opener = self.prefix[-1] if self.prefix else self.openers[0]
        before = "".join((self.openers[0], *self.prefix[:-1])) if self.prefix else ""
        return f"{before}{self.label.write(opener, name)}{self.name_close}"

    @property
    def _written_closers(self) -> tuple[str, ...]:
        return (self.body[1], self.closers[0]) if self.body[1] and not self.body[0] else self.closers[:1]

    @property
    def ends_of_value(self) -> tuple[str, ...]:
        """What may end a value that stands raw, or change how it is read."""
        tags = (*self.parameter.closes, self.body[1], *self.closers, *self.ends_unclosed_value)
        return tuple(dict.fromkeys(filter(None, (*tags, *(self.parameter.verbatim or ())[:1]))))

    def block(self, tools: Mapping[str, JsonSchema], request: Request) -> CallBlock:
        """The calls in the groups that the format writes, or one after another."""
        call = any_of(tools, self.tag)
        if not self.groups:
            opener = self.openers[0]
            between = sequence(self.gap, opener)
            return CallBlock(opener=opener, call=behind(call, opener), between=between, openers=self.openers)
        before, after = self.groups[0]
        closer, call = sequence(self.gap, after), sequence(self.gap, call)
        bare = self.openers if self.bare_calls == "calls" else ()
        openers = (*(opener for opener, _ in self.groups), *bare)
        if self.group_holds == "all calls":
            return CallBlock(opener=before, call=call, closer=closer, openers=openers)
        between = sequence(self.gap, before)
        return CallBlock(opener=before, call=sequence(call, closer), between=between, openers=openers)

    def tag(self, name: str, schema: JsonSchema) -> JsonObject:
        """The grammar of one call of `name`, from its opener through its closer."""
        closers = (part for closer in self._written_closers for part in (self.gap, closer))
        return sequence(self.opening_tag(name), parameters(self, name, schema), *closers)

    def opening_tag(self, name: str) -> Part:
        """The grammar of what comes before the parameters of a call of `name`."""
        return self.write_name(name)

    @property
    def gap(self) -> JsonObject:
        """The white space that the format writes between parts, which it reads as well without."""
        return optional(self.space)


@dataclass(frozen=True, eq=False)
class _Tags:
    """What is looked for where, in one syntax with one set of end-of-turn tokens.

    `after`: what has to follow a tag that may end a value, for each such tag.
    """

    between: Markers
    after_body: Markers
    body_open: Markers
    body_close: Markers
    in_value: Markers
    after: Mapping[str, Markers]
    line_break: Markers
    verbatim: Markers
    verbatim_end: Markers
    plain: Search


@lru_cache(maxsize=256)
def _tags(syntax: TaggedCalls, ends: tuple[str, ...], boundaries: Markers) -> _Tags:
    parameter = syntax.parameter
    body_open, body_close = syntax.body
    after_body = (*syntax.closers, *syntax.ends_unclosed_call, *ends)
    between = Markers((*parameter.opens, body_close, *after_body))
    after_call = boundaries.literals - set(syntax.closers)
    after = {body_close: Markers((*syntax.closers, *after_call))} if body_close else {}
    after |= dict.fromkeys(syntax.closers, Markers(after_call)) | dict.fromkeys(parameter.closes, between)
    ends_value = (*after, *syntax.ends_unclosed_value)
    in_value = Markers((*ends_value, *(syntax.line_break + tag for tag in ends_value)))
    first = "".join({re.escape(marker[0]) for marker in in_value.literals})
    verbatim, verbatim_end = parameter.verbatim or ("", "")
    return _Tags(
        between=between,
        after_body=Markers(after_body),
        body_open=Markers((body_open,)),
        body_close=Markers((body_close,)),
        in_value=in_value,
        after=after,
        line_break=Markers((syntax.line_break,)),
        verbatim=Markers((verbatim,)),
        verbatim_end=Markers((verbatim_end and verbatim_end + parameter.value_close,)),
        plain=re.compile(f"[{first}{JSON_SPECIAL}]").search,
    )
