"""From a request to what binds its reply: which grammar, from when on, and how long the model may think."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from streamsieve.backends.local.constraints.bound_text import Grammar
from streamsieve.backends.local.constraints.constraint import Constraint
from streamsieve.backends.local.constraints.demanded import Demanded, demanded
from streamsieve.backends.local.constraints.gate import Gate
from streamsieve.backends.local.constraints.grammar import Grammars
from streamsieve.backends.local.constraints.schema_lint import ignored
from streamsieve.backends.request_fields import Body
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import JsonSchema, Request
from streamsieve.parsers.structural_tag import Demand
from streamsieve.parsers.tag_parts import JsonObject, json
from streamsieve.parsers.thinking_watch import MessageWatch, ThinkingWatch
from streamsieve.wire.request.enforcement import bound_tools
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.request.tool_choice import NO_CALLS, ToolChoice
from streamsieve.wire.settings import ToolStrictLevel

_logger = logging.getLogger(__name__)
_BUDGET = "thinking_token_budget"
_IN_ITS_PLACE = "streamsieve: in the place of what is no JSON schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one server constrains.

    `enable_in_reasoning`: thinking is bound too, from the first token of a reply. `inexpressible`: what becomes of a
    request whose demand the format of the model has no grammar for, an error or a free reply. `tool_strict_level`: as
    in `Settings`, but that at "auto" the arguments of tools that say nothing are bound.
    """

    enable_in_reasoning: bool = False
    inexpressible: Literal["refuse", "best effort"] = "refuse"
    tool_strict_level: ToolStrictLevel = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestConstraint:
    """What binds the replies to one request.

    `unenforced`: what of the request's schemas is passed over, in words that hold nothing of the request.
    """

    make: Callable[[], Constraint]
    unenforced: Sequence[str] = ()

    def start(self) -> Constraint:
        """The constraint of one reply; each of several choices has its own."""
        return self.make()


class RequestConstraints:
    """Makes the constraints of the requests to one model.

    `format`: how its replies are read; None where nothing reads them. `encode`: the tokens of plain text.
    """

    def __init__(
        self,
        grammars: Grammars,
        format: Format | None,
        encode: Callable[[str], Sequence[int]],
        options: Options | None = None,
    ) -> None:
        self._grammars = grammars
        self._vocabulary = grammars.vocabulary
        self._format = format
        self._encode = encode
        self._options = options or Options()
        for marker in ThinkingWatch(format, Request(parse_calls=True)).ends:
            self._vocabulary.holding(marker.encode())  # looked up now, since it takes a while the first time

    async def of(self, body: Body, request: Request) -> RequestConstraint | None:
        """What binds the replies; None where they are free. `request` has the prompt's tail.

        Raises Refused where the request contradicts itself or demands what cannot be.
        """
        choice = ToolChoice.of(dict(body), request)
        wanted = demanded(body)
        budget = _budget(body)
        unenforced: list[str] = []
        grammar = await self._grammar(choice, wanted, request, unenforced)
        if grammar is None and budget is None:
            return None
        if unenforced:
            _logger.warning("schemas are not enforced in full: %s", "; ".join(sorted(set(unenforced))))
        return RequestConstraint(make=self._gates(grammar, request, budget), unenforced=tuple(unenforced))

    # -- when it binds --

    def _gates(self, grammar: Grammar | None, request: Request, budget: int | None) -> Callable[[], Constraint]:
        def watch() -> ThinkingWatch:
            format = None if self._options.enable_in_reasoning and grammar else self._format
            return ThinkingWatch(format, request, self._vocabulary.markers)

        if budget is not None and (self._format is None or not (self._format.messages or self._format.reasoning)):
            raise Refused(f"{_BUDGET}: this server reads no thinking; it needs a reasoning parser.", _BUDGET)
        if budget is not None and self._format is not None and self._format.messages:
            return self._message_gates(self._format, grammar, request, budget)
        if grammar is not None and grammar.demands and not request.include_reasoning:
            budget = 0  # nobody will see the thinking, and what is demanded comes at once
        closings = {closer: self._tokens(closer) for closer in watch().closers}
        return lambda: Gate(self._vocabulary, grammar, watch(), budget=budget, closings=closings)

    def _message_gates(
        self, format: Format, grammar: Grammar | None, request: Request, budget: int
    ) -> Callable[[], Constraint]:
        closer = format.messages.thinking_end if format.messages else ""
        if not closer:
            raise Refused(f"{_BUDGET}: {format.name} has no marker that ends its thinking.", _BUDGET)
        vocabulary, closings = self._vocabulary, {closer: self._tokens(closer)}
        return lambda: Gate(
            vocabulary,
            grammar,
            ThinkingWatch(format, request),
            budget=budget,
            closings=closings,
            messages=MessageWatch(format, request, vocabulary.markers),
        )

    def _tokens(self, text: str) -> Sequence[int]:
        tokens: list[int] = []
        for piece in self._vocabulary.split(text):
            tokens += [piece] if isinstance(piece, int) else self._encode(piece)
        return tokens

    # -- what it is --

    async def _grammar(
        self, choice: ToolChoice, wanted: Demanded | None, request: Request, unenforced: list[str]
    ) -> Grammar | None:
        if wanted and choice.calls == "required" and wanted.schema is None:
            raise Refused(f"{wanted.param}: not together with a tool_choice that requires calls.", wanted.param)
        if choice.calls == "required" and not self._reads_calls:
            raise Refused("tool_choice: this server reads no calls; it needs a tool parser.", "tool_choice")
        if wanted and wanted.schema is not None:
            unenforced += _checked(wanted.schema, wanted.param, strict=wanted.strict)
        if wanted and wanted.tag is not None:
            return await self._compile(wanted.tag, wanted.param)
        if not self._reads_calls:
            choice = NO_CALLS
        places = {name: index for index, name in enumerate(request.tools)}
        for name, schema in choice.tools.items() if choice.calls != "none" else ():
            strict = self._options.tool_strict_level == "parameter" or choice.strict.get(name, False)
            unenforced += _checked(schema, f"tools[{places[name]}]", strict=strict)
        if choice.calls == "none" and wanted is None:
            return None
        return await self._demand(choice, wanted, request, unenforced)

    @property
    def _reads_calls(self) -> bool:
        return self._format is not None and (self._format.calls is not None or self._format.messages is not None)

    async def _demand(
        self, choice: ToolChoice, wanted: Demanded | None, request: Request, unenforced: list[str]
    ) -> Grammar | None:
        param = "tools" if choice.calls == "required" or wanted is None else wanted.param
        level = self._options.tool_strict_level
        demand = Demand(
            calls=choice.calls,
            tools=choice.tools,
            bound=bound_tools(choice, level, at_auto=True),
            parallel=request.parallel_tool_calls and not request.named_tool_choice,
            response=_response(wanted) if choice.calls != "required" else None,
        )
        try:
            return await self._compile(self._tag(demand, wanted, request), param)
        except Inexpressible as error:
            if self._options.inexpressible == "refuse" and (choice.calls == "required" or wanted):
                demander = "tool_choice" if choice.calls == "required" else param
                raise Refused(f"{demander}: cannot be enforced: {error}.", demander) from error
            unenforced.append("calls")
            return None
        except Refused:
            strict = bound_tools(choice, level)
            if choice.calls != "auto" or strict == demand.bound:
                raise
        # A schema that has no grammar is no reason to refuse a request that only offers its tool.
        unenforced.append("the arguments of tools that are not strict")
        return await self._compile(self._tag(replace(demand, bound=strict), wanted, request), param)

    def _tag(self, demand: Demand, wanted: Demanded | None, request: Request) -> JsonObject:
        """The format of the reply behind its thinking."""
        if self._format is None:
            assert wanted is not None
            return wanted.part or json(wanted.schema or {})
        made = self._format.structural_tag(demand, request)["format"]
        if wanted and wanted.part is not None:
            made = _in_its_place(made, wanted.part)
        assert isinstance(made, dict)
        return made

    async def _compile(self, form: JsonObject, param: str) -> Grammar:
        return await self._grammars.compile({"type": "structural_tag", "format": form}, param)


def _budget(body: Body) -> int | None:
    budget = body.get(_BUDGET)
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 0):
        raise Refused(f"{_BUDGET}: {budget!r} must be an integer of at least 0.", _BUDGET)
    return budget


def _response(wanted: Demanded | None) -> JsonSchema | None:
    if wanted is None:
        return None
    return {"description": _IN_ITS_PLACE} if wanted.schema is None else wanted.schema


def _in_its_place(part: object, meant: JsonObject) -> object:
    """`part` with `meant` where a schema stands for it."""
    if isinstance(part, list):
        return [_in_its_place(one, meant) for one in part]
    if not isinstance(part, dict):
        return part
    if part.get("json_schema") == {"description": _IN_ITS_PLACE}:
        return meant
    return {key: _in_its_place(value, meant) for key, value in part.items()}


def _checked(schema: JsonSchema, param: str, *, strict: bool) -> list[str]:
    """What of `schema` is passed over. Raises Refused for that where it is strict."""
    found = list(ignored(schema))
    if strict and found:
        first = found[0]
        where = f"at {first.pointer}" if first.pointer else "at its root"
        raise Refused(f"{param}: its schema is strict, but cannot be enforced: '{first.what}' {where}.", param)
    return [one.what for one in found]
