"""Calls and answers that a request demands, as a constraint that its upstream enforces."""

from __future__ import annotations

from dataclasses import replace

from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import Opening
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import json
from streamsieve.parsers.thinking_tag import behind_thinking, may_think, whole_reply
from streamsieve.wire.completions.prompt import render_prompt
from streamsieve.wire.dialects.dialect import Dialect
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.call_schema import call_schema, reading
from streamsieve.wire.request.constraints import with_schema, with_tag
from streamsieve.wire.request.nested_schema import nests_deeper
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.request.response_format import is_constraint, schema_of
from streamsieve.wire.request.tool_choice import ToolChoice
from streamsieve.wire.settings import ToolStrictLevel

_DEEPEST = 100
"""Objects and lists within one another in a schema that becomes a constraint; what makes one of it is recursive."""


def enforce(prepared: Prepared) -> None:
    """Have the upstream enforce what the request demands, and read the reply as that makes it.

    Raises Refused where calls are required, or an answer of a schema, and that cannot be enforced, unless
    `enforcement` is best effort.
    """
    settings, dialect = prepared.settings, prepared.settings.dialect
    if dialect is None or settings.format is None or prepared.upstream_api != "chat":
        return
    choice = prepared.choice
    response = schema_of(prepared.body.get("response_format"))
    if not _needs_us(prepared, dialect, settings.format, choice, response):
        return
    demand = Demand(
        calls=choice.calls,
        tools=choice.tools,
        bound=bound_tools(choice, settings.tool_strict_level),
        parallel=prepared.request.parallel_tool_calls and not prepared.request.named_tool_choice,
        response=response,
    )
    try:
        _constrain(prepared, dialect, settings.format, demand)
    except Inexpressible as error:
        demanded = "tool_choice" if demand.calls == "required" else "response_format" if response is not None else None
        if demanded is not None and settings.enforcement == "always":
            raise Refused(f"{demanded} cannot be enforced: {error}", demanded) from error


def _needs_us(
    prepared: Prepared, dialect: Dialect, format: Format, choice: ToolChoice, response: JsonSchema | None
) -> bool:
    """Whether there is something to enforce that the upstream would not see to by itself."""
    if dialect.calls == "enforced" and prepared.prompt is None and (choice.calls == "none" or response is None):
        return False
    match choice.calls:
        case "required":
            return True
        case "auto":
            is_strict = prepared.settings.tool_strict_level != "auto" or any(choice.strict.values())
            return response is not None or is_strict or len(choice.tools) < len(prepared.request.tools)
        case "none":  # the upstream's own way with a response format would bind the thinking
            binds = dialect.calls == "raw" and dialect.binds == "the reply" and may_think(format, prepared.request)
            return response is not None and (binds or _is_unconstrained(prepared, dialect))


def _is_unconstrained(prepared: Prepared, dialect: Dialect) -> bool:
    """Whether the upstream is asked where it takes no constraint."""
    return prepared.prompt is not None and dialect.completions != "constrained"


def bound_tools(choice: ToolChoice, level: ToolStrictLevel, *, at_auto: bool = False) -> frozenset[str]:
    """The tools whose arguments must follow their schema.

    As vLLM's documentation has it ("Constrained Decoding Behavior"): calls that are required follow it unless a
    tool says `strict: false`, others where it says `strict: true`; at the level "parameter" all do. `at_auto`: at the
    level "auto", which says nothing, all follow it that do not say `strict: false`.
    """
    if level == "parameter":
        return frozenset(choice.tools)
    unsaid = choice.calls == "required" or (at_auto and level == "auto")
    return frozenset(name for name in choice.tools if choice.strict.get(name, unsaid))


def _constrain(prepared: Prepared, dialect: Dialect, format: Format, demand: Demand) -> None:
    """Raises Inexpressible, naming what stands in the way; nothing has been changed then."""
    body = prepared.body
    if _is_unconstrained(prepared, dialect):
        raise Inexpressible("the upstream takes constraints in chat completions only, and is sent a prompt")
    if dialect.calls == "enforced":
        raise Inexpressible("the upstream takes tools or a response format, not both")
    for field in dialect.constraints:
        if body.get(field) is not None:
            raise Inexpressible(f"the request has a constraint of its own, {field!r}")
    if demand.response is None and is_constraint(body.get("response_format")):
        raise Inexpressible("the request has a 'response_format' that is no JSON schema")
    for schema in (*demand.schemas.values(), demand.response):
        if nests_deeper(schema, _DEEPEST):
            raise Inexpressible(f"a schema nests deeper than {_DEEPEST} levels")
    if demand.calls == "required" and not demand.tools:
        raise Inexpressible("there is no function that may be called")
    if dialect.tag is None:
        _constrain_by_schema(prepared, dialect, format, demand)
    else:
        _constrain_by_tag(prepared, dialect, format, demand)


def _constrain_by_tag(prepared: Prepared, dialect: Dialect, format: Format, demand: Demand) -> None:
    """A structural tag, in the format's own syntax; in JSON where the format has no grammar of its calls."""
    try:
        tag = whole_reply(format, demand, prepared.request)
    except Inexpressible:
        answer = json(_answer_schema(demand))
        content = behind_thinking(reading(format, demand), prepared.request, answer)
        tag = {"type": "structural_tag", "format": content}
        _read_as_json(prepared, format, demand)
    prepared.send(with_tag(prepared.body, dialect, tag))


def _constrain_by_schema(prepared: Prepared, dialect: Dialect, format: Format, demand: Demand) -> None:
    schema = _answer_schema(demand)
    if dialect.binds == "the answer" and format.messages:
        raise Inexpressible(f"the answers of {format.name} are messages, which no JSON schema describes")
    if dialect.binds == "the reply" and may_think(format, prepared.request):
        _think_not(prepared, dialect, format)
    prepared.send(with_schema(prepared.body, dialect, schema))
    _read_as_json(prepared, format, demand)


def _answer_schema(demand: Demand) -> JsonObject:
    """Raises Inexpressible where the answer may be any text."""
    if demand.calls == "required" or (demand.calls == "auto" and demand.response is not None):
        return call_schema(demand)
    if demand.response is None:
        raise Inexpressible("a JSON schema cannot leave it open whether there is a call")
    return dict(demand.response)


def _read_as_json(prepared: Prepared, format: Format, demand: Demand) -> None:
    if demand.calls != "none":
        prepared.settings = prepared.settings.reading(reading(format, demand))


def _think_not(prepared: Prepared, dialect: Dialect, format: Format) -> None:
    """Switch thinking off, since the constraint would bind it; the reply is read accordingly.

    Raises Inexpressible where it cannot be switched off, and the reply would start with it.
    """
    span, request, body, prompt = format.reasoning, prepared.request, prepared.body, prepared.prompt
    assert span is not None
    switch = dict.fromkeys(span.switch.keys[:1], False) | dict([span.switch.level] if span.switch.level else [])
    given = body.get("chat_template_kwargs")
    kwargs = {**(given if isinstance(given, dict) else {}), **switch}
    template = {"chat_template_kwargs": kwargs} if switch else {}
    prepared.request = replace(request, chat_template_kwargs={**request.chat_template_kwargs, **switch})
    prepared.body = {**body, **(template if dialect.thinking_off == "template" or prompt else dialect.thinking_off)}
    if prompt is not None:
        render_prompt(prepared)
    if span.of(prepared.request).opening(prepared.request)[0] not in (Opening.OFF, Opening.ANSWERED, Opening.MARKED):
        prepared.request, prepared.body, prepared.prompt = request, body, prompt
        raise Inexpressible(f"the constraint would bind the thinking, which {format.name} cannot switch off")
