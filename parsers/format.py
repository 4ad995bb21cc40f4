"""A format: how one model family writes reasoning, content and calls, as one frozen value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from streamsieve.parsers.call_ids import CallId, random_id
from streamsieve.parsers.calls.syntax import CallSyntax
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.machine import Machine
from streamsieve.parsers.messages import MessageSyntax, OneOfBoth
from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.parsers.rendering import render
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.rewriting import Rewriting
from streamsieve.parsers.structural_tag import Demand, structural_tag
from streamsieve.parsers.tag_parts import JsonObject
from streamsieve.parsers.tokens import SpecialTokens


@dataclass(frozen=True, kw_only=True)
class Format:
    """One family's way of writing a reply; machine, renderer and structural tag come from this one value.

    `tool_names`, `reasoning_names`: the parser names that choose its calls and its reasoning.
    `ends`: end-of-turn tokens that an engine may leave in the text; they reach no tray.
    `separators`: markers between texts that mean nothing else. `lead_ins`: markers that count only at the
    start of an answer's text. `annotations`: tags round part of a text, which stays while they go: whole
    tags, or the beginnings of such as run to the next `>`.
    `rewriting`: what makes of the text of reasoning and content the text that is meant.
    `messages`: the grammar of a format whose messages fill all three trays; it has no `reasoning`
    and no `calls` beside it.
    """

    name: str
    tool_names: tuple[str, ...] = ()
    reasoning_names: tuple[str, ...] = ()
    reasoning: ReasoningSpan | None = None
    calls: CallSyntax | None = None
    messages: MessageSyntax | None = None
    ends: tuple[str, ...] = ()
    separators: tuple[str, ...] = ()
    lead_ins: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    rewriting: Callable[[], Rewriting] | None = None
    call_id: CallId = random_id

    def machine(
        self,
        request: Request,
        *,
        deliver: Literal["stream", "complete"] = "stream",
        whole: bool = False,
        tokens: SpecialTokens | None = None,
    ) -> Machine:
        """A parser for one reply to `request`.

        `whole`: the reply is fed in one piece, so a call that breaks is given back (contract, rule 7).
        `deliver="complete"`: so it is in a stream too, since each call is held until it is complete.
        `tokens`: with them, and ids beside the text, a marker that is only typed is text (rule 2).
        """
        return Machine(self, request, deliver=deliver, whole=whole, tokens=tokens)

    def check(self, request: Request) -> None:
        """Raise ConfigurationError where the request's `chat_template_kwargs` ask for what the format does not have."""
        if self.reasoning:
            self.reasoning.of(request)
        if self.calls:
            self.calls.of(request)

    def render(self, message: Message, request: Request) -> str:
        """`message` as the model would write it in reply to `request`.

        Raises Inexpressible where the format cannot say it, for instance when its content holds a marker.
        """
        return render(self, message, request)

    def structural_tag(self, demand: Demand, request: Request) -> JsonObject:
        """The structural tag (xgrammar's, as plain data) of the replies to `request` that are as `demand` has it.

        It begins where the thinking has ended. Raises Inexpressible, naming what cannot be said.
        """
        return structural_tag(self, demand, request)


def combine(
    reasoning: Format | None, tools: Format | None, *, names: tuple[str | None, str | None] = (None, None)
) -> Format:
    """The format of a reply whose thinking is read by one format and whose calls by another.

    `names`: what the two were asked for by, where that is known, for the error.

    Raises ConfigurationError where the two cannot work together: a message format frames all three
    trays, so it goes alone or with itself.
    """
    chosen = reasoning or tools
    if chosen is None:
        raise ConfigurationError("reasoning_parser, tool_parser: neither is set")
    other = tools or reasoning
    if chosen.messages or (other and other.messages):
        if combined := _combined(reasoning, tools):
            return combined
        if other is not chosen:
            raise ConfigurationError(
                f"reasoning_parser {_said(reasoning, names[0])} and tool_parser {_said(tools, names[1])} cannot work "
                "together: a message format frames reasoning, content and calls, so it is chosen alone or by both names"
            )
        return _by_names(chosen, chosen.messages, reasoning is not None, tools is not None)
    both = [one for one in (reasoning, tools) if one]
    return replace(
        chosen,
        name="+".join(_union((one.name,) for one in both)),
        reasoning=reasoning.reasoning if reasoning else None,
        calls=tools.calls if tools else None,
        ends=_union(one.ends for one in both),
        separators=_union(one.separators for one in both),
        lead_ins=_union(one.lead_ins for one in both),
        annotations=_union(one.annotations for one in both),
        call_id=tools.call_id if tools else random_id,
    )


def _by_names(chosen: Format, messages: MessageSyntax | None, reasoning: bool, tools: bool) -> Format:
    """A message format chosen by the one of its names, the other or both."""
    if messages is None or messages.one_name == "all trays" or (reasoning and tools):
        return chosen
    return replace(chosen, messages=OneOfBoth(syntax=messages, untold="calls" if reasoning else "reasoning"))


def _combined(reasoning: Format | None, tools: Format | None) -> Format | None:
    """What a message syntax makes of being combined, where it can be."""
    messages = [one.messages for one in (reasoning, tools) if one and one.messages]
    return next(filter(None, (one.combined(reasoning, tools) for one in messages)), None)


def _union(markers: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(markers)))


def _said(chosen: Format | None, name: str | None) -> str:
    return repr(name or (chosen.name if chosen else None))
