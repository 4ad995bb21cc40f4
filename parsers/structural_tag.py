"""What a model may write, as a structural tag: the way from a format to a grammar that constrains generation."""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from streamsieve.parsers.arguments.schema_choices import argument_objects
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.rendering import render
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.results import Message, ToolCall
from streamsieve.parsers.tag_parts import LEAD, JsonObject, either, json, optional, sequence, text

if TYPE_CHECKING:
    from streamsieve.parsers.format import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a reply must be.

    `calls`: whether it may or must be calls; `required` with one tool in `tools` is a named call.
    `tools`: the tools that may be called, name to the schema of the parameters (empty: any object).
    `bound`: those whose arguments must follow their schema; the others' may be any object.
    `parallel`: whether there may be more than one call.
    `response`: what an answer that is no call must be; None: any text.
    `opener`: the opener of a call, or of a group of calls, that ended the thinking and is written already.
    """

    calls: Literal["none", "auto", "required"]
    tools: Mapping[str, JsonSchema]
    bound: frozenset[str]
    parallel: bool = True
    response: JsonSchema | None = None
    opener: str = ""

    @property
    def schemas(self) -> dict[str, JsonSchema]:
        """The tools, each with the schema that its arguments must follow."""
        return {name: schema if name in self.bound else {} for name, schema in self.tools.items()}


def structural_tag(format: Format, demand: Demand, request: Request) -> JsonObject:
    """See `Format.structural_tag`."""
    made = replies(format, demand, request)
    check_names(format, demand)
    return {"type": "structural_tag", "format": made}


def replies(format: Format, demand: Demand, request: Request) -> JsonObject:
    """The grammar of the replies that are as `demand` has it, whatever the names in it: see `check_names`."""
    if demand.calls == "required" and not demand.tools:
        raise Inexpressible("calls are required, and there is no tool that may be called")
    return format.messages.tag(demand, request) if format.messages else _reply(format, demand, request)


def check_names(format: Format, demand: Demand) -> None:
    """Raise Inexpressible for a tool that may be called or a parameter whose name would not be read as it is."""
    if demand.calls == "none":
        return
    plain = replace(format, reasoning=None)
    for name, schema in demand.schemas.items():
        keys = {key for members in argument_objects(schema) for key in members.declared}
        for said, arguments in ((f"a tool of the name {name!r}", []), (f"{name!r} with {sorted(keys)}", keys)):
            call = ToolCall("", name, json_text.dumps(dict.fromkeys(arguments, "word")))
            try:
                render(plain, Message(None, None, [call]), Request(tools={name: {}}, parse_calls=True))
            except Inexpressible:
                raise Inexpressible(f"{format.name} has no way to call {said}") from None


def _reply(format: Format, demand: Demand, request: Request) -> JsonObject:
    """The reply of a format whose calls stand in text."""
    lead = LEAD if format.reasoning else sequence()  # behind thinking
    answer = _answer(format, demand.response) if demand.response is not None else None
    if demand.calls == "none" or not demand.tools:
        return sequence(lead, answer) if answer else text()
    if format.calls is None:
        raise Inexpressible(f"{format.name} has no calls")
    block = format.calls.block(demand.schemas, request)
    parallel = demand.parallel and format.calls.calls_in_reply == "many"
    text_too = demand.calls == "auto" and answer is None
    if demand.opener:
        then = block.text_behind(parallel=parallel) if text_too else None
        return block.behind(demand.opener, parallel=parallel, then=then)
    if text_too:
        return block.in_text(parallel=parallel)
    calls = block.calls(parallel=parallel)
    return sequence(lead, calls if answer is None or demand.calls == "required" else either(calls, answer))


def _answer(format: Format, response: JsonSchema) -> JsonObject:
    """An answer of the schema `response`, in the tags that the format may write round it."""
    opener, closer = format.reasoning.answer[0] if format.reasoning and format.reasoning.answer else ("", "")
    return sequence(optional(opener), json(response), optional(closer))
