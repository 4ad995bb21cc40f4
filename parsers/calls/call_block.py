"""The calls of a reply as a grammar: what a call syntax says of them, and the replies that are made of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamsieve.parsers.arguments.narrowed_pattern import not_starting_with
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import (
    LEAD,
    JsonObject,
    Part,
    either,
    optional,
    pattern,
    repeated,
    sequence,
    text,
    triggered,
)


@dataclass(frozen=True, kw_only=True)
class CallBlock:
    """`opener wrapper[0] first call { between call } closer wrapper[1]`, all calls of a reply that has nothing else.

    `opener`: the marker with which the block begins within text; empty where it can begin only at the
    answer's start.
    `trigger`: as much of the block's beginning as makes it one, where that is more than the opener.
    `call`: one call, of any tool. `wrapper`: what stands round the calls inside the opener.
    `at_start`: what may stand round them at the answer's start instead of opener and wrapper, nothing at all
    included; `starts`: with what such calls begin.
    `openers`: every marker that opens calls; the ones that the block does not begin with are kept out of text.
    """

    call: JsonObject
    opener: str = ""
    trigger: str = ""
    wrapper: tuple[str, str] = ("", "")
    first: Part = ""
    between: Part = ""
    closer: Part = ""
    at_start: tuple[tuple[str, str], ...] = ()
    starts: tuple[str, ...] = ()
    openers: tuple[str, ...] = ()

    def _inside(self, wrapper: tuple[str, str], *, parallel: bool) -> JsonObject:
        more = [repeated(self.between, self.call)] if parallel else []
        return sequence(wrapper[0], self.first, self.call, *more, self.closer, wrapper[1])

    def _behind_opener(self, *, parallel: bool) -> JsonObject:
        return self._inside(self.wrapper, parallel=parallel)

    def calls(self, *, parallel: bool) -> JsonObject:
        """Calls and nothing else; one where they may not be `parallel`."""
        ways = [self._inside(wrapper, parallel=parallel) for wrapper in self.at_start]
        ways += [sequence(self.opener, self._behind_opener(parallel=parallel))] if self.opener else []
        return either(*ways)

    def in_text(self, *, parallel: bool) -> JsonObject:
        """Text with calls, or without any."""
        marked = self._marked(parallel=parallel)
        if not self.at_start:
            return marked
        words = dict.fromkeys(word for word in (*self.starts, self.opener, *self.openers) if word.strip())
        other, short = map(pattern, not_starting_with(words))
        called = sequence(LEAD, self.calls(parallel=parallel), self.text_behind(parallel=parallel))
        return either(called, sequence(other, marked), short)

    def _marked(self, *, parallel: bool) -> JsonObject:
        """Text with calls behind the opener."""
        if not self.opener:
            return self._no_calls()
        block = sequence(self.opener, self._behind_opener(parallel=parallel))
        if parallel:
            return triggered(block, self.trigger or self.opener, excludes=self._other_openers)
        return sequence(self._no_calls(), optional(block, self._no_calls()))

    @property
    def _other_openers(self) -> list[str]:
        return [opener for opener in self.openers if opener != self.opener]

    def _no_calls(self) -> JsonObject:
        """Text in which no call begins."""
        return text([*self._other_openers, self.trigger or self.opener])

    def behind(self, opener: str, *, parallel: bool, then: JsonObject | None) -> JsonObject:
        """What may follow an `opener` that is written already; `then`, text, where text may follow the calls."""
        if opener not in {self.opener, *self.openers}:
            known = ", ".join(map(repr, dict.fromkeys(filter(None, (self.opener, *self.openers)))))
            raise Inexpressible(f"{opener!r} opens no call; what does: {known}")
        inside = self._behind_opener(parallel=parallel)
        return inside if then is None else sequence(inside, then)

    def text_behind(self, *, parallel: bool) -> JsonObject:
        """What may follow the first calls where text may."""
        return self._marked(parallel=True) if parallel else self._no_calls()


def any_of(tools: Mapping[str, JsonSchema], call: Callable[[str, JsonSchema], JsonObject]) -> JsonObject:
    """A call of any of `tools`, made by `call` of its name and the schema of its parameters."""
    return either(*(call(name, schema) for name, schema in tools.items()))
