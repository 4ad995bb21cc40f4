"""Reads a reply as its response template says: text outside, and regions from an opener to a closer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsieve.parsers.arguments.json_text import copy_json
from streamsieve.parsers.call_writer import CallState, CallWriter
from streamsieve.parsers.calls.call_list import read_list
from streamsieve.parsers.calls.json_object import CallObject
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.messages import MessageSyntax, nowhere
from streamsieve.parsers.request import Request
from streamsieve.parsers.response_template.calls import Passage, cut_call, made_calls, passage
from streamsieve.parsers.response_template.prompt import Region, open_region
from streamsieve.parsers.response_template.signs import Sign, Signs
from streamsieve.parsers.response_template.template import Field, Template
from streamsieve.parsers.response_template.values import Unparsable
from streamsieve.parsers.results import Message
from streamsieve.parsers.scanner import EndOfText, Malformed, Reading, Write
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject
from streamsieve.parsers.trays import Trays


@dataclass(frozen=True, kw_only=True)
class TemplateMessages(MessageSyntax):
    """The grammar that a template describes."""

    one_name: ClassVar = "its own"

    template: Template

    def read(self, calls: CallWriter, trays: Trays, request: Request) -> Reading[None]:
        """Read the whole reply."""
        return _Reply(self.template, calls, trays, request).read()

    def write(self, message: Message, request: Request) -> str:
        """Templates say how to read, and not how to write: only content can be said."""
        return message.content or ""

    def tag(self, demand: Demand, request: Request) -> JsonObject:
        """Raises Inexpressible: what templates do not say."""
        raise Inexpressible("a response template says how a reply is read, and not how it is written")


class _Reply:
    """One reply, read region by region."""

    def __init__(self, template: Template, calls: CallWriter, trays: Trays, request: Request) -> None:
        self._template = template
        self._calls = calls
        self._trays = trays
        self._request = request
        self._reader = calls.reader
        self._spent: set[str] = set()  # fields that came and may not come again

    def read(self) -> Reading[None]:
        """Read the whole reply."""
        reader, implicit = self._reader, self._template.implicit
        write = self._trays.reasoning if implicit.name == "thinking" else self._trays.content
        region, self._spent = open_region(self._template, self._request.prompt_tail or "")
        if region is not None:
            yield from self._region(region, reader.keep())
        while True:
            reader.forget()
            opened = self._watched()
            found = yield from Signs((*opened, *implicit.closes.signs)).find(reader, write)
            if found is None:
                return
            field = opened.get(found.sign)
            if field is not None:
                if not field.repeats:
                    self._spent.add(field.name)
                yield from self._region(Region(field, found.groups), reader.keep(len(found.text)))

    def _watched(self) -> dict[Sign, Field]:
        return {sign: field for field in self._template.fields if field.name not in self._spent for sign in field.opens}

    def _region(self, region: Region, mark: int) -> Reading[None]:
        """A region whose opener began at `mark`, or in the prompt."""
        field, reader, trays = region.field, self._reader, self._trays
        if field.name == "tool_calls" and self._request.parse_calls:
            yield from self._tool_calls(region, mark)
            return
        if field.name == "tool_calls":
            trays.content(reader.since(mark))
            reader.forget()
            closer = yield from field.closes.find(reader, trays.content)
            trays.content(closer.text if closer else "")
            return
        trays.marked = True
        reader.forget()
        yield from field.closes.find(reader, trays.reasoning if field.name == "thinking" else trays.content)

    # -- calls --

    def _tool_calls(self, region: Region, mark: int) -> Reading[None]:
        calls, reader, plan = self._calls, self._reader, passage(region.field)
        if region.written:  # the prompt has begun the call: it is read with the rest, but never given back
            reader.text, reader.base = region.written + reader.text, -len(region.written)
            mark = reader.keep()
        calls.open()
        calls.begin(reader.offset - mark)
        if plan is None:
            yield from self._read_first(region, mark)
            return
        try:
            yield from self._passed_on(plan, region)
        except (Malformed, EndOfText) as error:
            yield from self._went_wrong(region.field, mark, ended=isinstance(error, EndOfText))

    def _passed_on(self, plan: Passage, region: Region) -> Reading[None]:
        """Calls in plain JSON, their arguments going out as they come."""
        calls, reader, field = self._calls, self._reader, region.field
        following = yield from reader.peek_after_space()
        if plan.shape == "list":
            element = CallObject(name_key=plan.name, argument_keys=(plan.arguments,))
            yield from reader.take("[")
            yield from read_list(calls, element.read)
            yield from reader.space()
            closers = Signs((*field.closes.signs, *self._template.implicit.closes.signs))
            if not (yield from closers.takes(reader)):
                yield from field.closes.find(reader, self._trays.content)
            return
        if plan.shape == "object":
            yield from CallObject(name_key=plan.name, argument_keys=(plan.arguments,)).read(calls)
        elif following == "{":
            calls.start(str(region.captured.get(plan.name)))
            yield from copy_json(reader, calls.arguments)
        else:
            raise Malformed
        yield from self._close(field)

    def _close(self, field: Field) -> Reading[None]:
        """The call is complete: take its closer; one that is missing is forgiven where the reply or the turn ends."""
        reader, calls = self._reader, self._calls
        if field.closes.signs:
            yield from reader.space()
            if not (yield from field.closes.takes(reader)):
                ends = reader.is_over or field.closes.end_within(reader)
                if not ends and not (yield from self._template.implicit.closes.takes(reader)):
                    raise Malformed
                calls.unclosed()
        calls.end()

    def _went_wrong(self, field: Field, mark: int, *, ended: bool) -> Reading[None]:
        """Calls broke off: what is none is text, through the closer of the region."""
        calls, reader, trays = self._calls, self._reader, self._trays
        if calls.state is CallState.REAL and calls.stays_cut(ended=ended):
            return
        write: Write = nowhere
        if calls.state is CallState.TENTATIVE and calls.survived:  # the list ends here: the rest of it is text
            reader.rewind(calls.mark)
            write = trays.content
        closer = yield from field.closes.find(reader, write)
        if not calls.survived:
            trays.repaired(mark, "broken_message")
            trays.content(reader.since(max(mark, 0)))
        elif write is nowhere and calls.holding:
            text = reader.since(max(calls.mark, 0))
            trays.content(text.removesuffix(closer.text) if closer else text)

    def _read_first(self, region: Region, mark: int) -> Reading[None]:
        """Calls in any other body, which is read as a whole first."""
        calls, reader, field, tools = self._calls, self._reader, region.field, self._request.tools
        body: list[str] = []
        closer = yield from field.closes.find(reader, body.append)
        cut = closer is None and reader.cut
        try:
            if cut and (made := cut_call(field, "".join(body), region.captured, tools)):
                calls.start(made[0])
                if made[1]:
                    calls.arguments(made[1])
                if calls.stays_cut(ended=True):
                    return
            elif not cut:
                for name, arguments in made_calls(field, "".join(body), region.captured, tools):
                    calls.whole(name, arguments)
                    calls.end()
                self._trays.marked = True
                return
        except (Malformed, Unparsable):
            if calls.survived:
                return
        self._trays.repaired(mark, "broken_message")
        self._trays.content(reader.since(max(mark, 0)))
