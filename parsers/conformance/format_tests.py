"""The tests of the conformance kit; `streamsieve.parsers.conformance` says how they are had."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, ClassVar

from streamsieve.parsers import registry
from streamsieve.parsers.conformance import EXAMPLES, SEED, cases, laws, specimens
from streamsieve.parsers.conformance.cases import Case, Failure, Way
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.events import CallArguments, Content, Reasoning
from streamsieve.parsers.format import Format, combine

if TYPE_CHECKING:
    import pytest

_SPACES_AND_WORDS = "word " * 40_000


class Conformance:
    """The tests of one format; a subclass names it and its cases.

    `cases`: a case file, or several; relative to the file of the subclass. A case's parser names choose the
    format itself where it has them (it need not be installed), else what the registry knows by them.
    `wild`: further characters with which something of the format may begin; plain text is tried without them.
    """

    format: ClassVar[Format]
    cases: ClassVar[str | Path | Iterable[str | Path]] = ()
    wild: ClassVar[str] = ""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test a case, where a test takes one."""
        if "case" in metafunc.fixturenames:
            found = list(self._cases())
            metafunc.parametrize("case", found, ids=[case.id or str(number) for number, case in enumerate(found)])

    # -- cases --

    def test_case_whole(self, case: Case) -> None:
        """As the body of an answer that is not streamed."""
        self._check(case, [cases.whole()])

    def test_case_by_characters(self, case: Case) -> None:
        """Streamed in single characters."""
        self._check(case, [cases.in_pieces(case, 1)])

    def test_case_at_every_cut(self, case: Case) -> None:
        """Cut in two at every place, and the same each time as whole and as any other way."""
        self._check(case, cases.ways(case))

    def test_case_in_its_own_chunks(self, case: Case) -> None:
        """In the deltas that were reported, where the case has them."""
        if case.chunks is None:
            _skip("the case has no chunks of its own")
        self._check(case, [Way("own chunks", case.chunks)])

    def test_case_with_calls_held(self, case: Case) -> None:
        """With `deliver="complete"`: streamed is whole, but that a call which was cut off stays text."""
        chosen = self._format_of(case)
        whole = cases.run(case, cases.whole(), chosen)
        held = cases.run(case, cases.in_pieces(case, 1), chosen, deliver="complete")
        if any(repair.rule == "cut_call" for repair in whole.repairs):
            assert len(held.tool_calls) == len(whole.tool_calls) - 1
        else:
            assert cases.trays(held) == cases.trays(whole)

    # -- laws --

    def test_one_answer_however_cut(self, request: pytest.FixtureRequest) -> None:
        """Random replies, most of them wrecks, read in random cuts (rules 1, 7 and 12)."""
        known = specimens.fragments(self.format, [case.raw for case in self._cases()])
        for random in self._randoms(request):
            sizes = [random.randint(1, 9) for _ in range(random.randint(1, 4))]
            asked, finish = specimens.request(random, self.format), random.choice(specimens.FINISHES)
            laws.one_answer(self.format, specimens.reply(random, known), asked, finish, sizes)

    def test_any_text_gives_an_answer(self, request: pytest.FixtureRequest) -> None:
        """Random unicode, deep nesting, and long text behind every marker without its closer (rules 3 and 12)."""
        for random in self._randoms(request):
            laws.invents_nothing(self.format, specimens.noise(random, 200))
        for marker in ("", *specimens.markers(self.format)):
            for text in (_SPACES_AND_WORDS, '{"a":' * 40_000, "[" * 100_000):
                machine = self.format.machine(specimens.asked(self.format))
                for piece in specimens.cut(marker + text, [1000]):
                    machine.feed(piece)
                machine.finish("length")

    def test_plain_text_is_kept(self, request: pytest.FixtureRequest) -> None:
        """Letters that begin no marker come out as they went in (rules 2 and 3)."""
        first = {marker[0] for marker in specimens.markers(self.format)} | {*"<[{]} \n", *self.wild}
        for random in self._randoms(request):
            letters = (one for one in specimens.noise(random, 200) if one not in first and not one.isspace())
            laws.keeps_plain_text(self.format, f"Plain{''.join(letters)}.", random.choice(specimens.FINISHES))

    def test_nothing_is_invented(self, request: pytest.FixtureRequest) -> None:
        """What comes out of a reply stands in it (rule 3)."""
        known = specimens.fragments(self.format, [case.raw for case in self._cases()])
        for random in self._randoms(request):
            laws.invents_nothing(self.format, specimens.reply(random, known))

    def test_what_is_rendered_is_read(self, request: pytest.FixtureRequest) -> None:
        """A message without markup in its texts can be said, and is read as it was said, in any cut."""
        if specimens.restored(self.format):
            _skip("no message is read as it was written")
        for random in self._randoms(request):
            message = specimens.message(random, self.format)
            assert laws.reads_what_it_renders(self.format, message, [random.randint(1, 9)]), f"not sayable: {message}"

    def test_deltas_leave_at_once(self) -> None:
        """What cannot be a marker is not held back, in any tray that the format has."""
        mine = self.format
        has = {Content: True, Reasoning: specimens.thinks(mine), CallArguments: specimens.arguments_stream(mine)}
        for tray in (tray for tray, is_there in has.items() if is_there):
            for size in (1, 3, 7):
                laws.leaves_at_once(self.format, tray, size)

    def test_a_marker_alone_sends_nothing(self) -> None:
        """A delta that is only a think marker gives no text."""
        if self.format.reasoning is None:
            _skip("the format has no think markers")
        laws.sends_nothing_for_a_marker(self.format)

    def test_work_grows_with_the_text_alone(self) -> None:
        """Time is linear in the text, however hostile (rule 13)."""
        for marker in ("", *specimens.markers(self.format)):
            for unit in specimens.HOSTILE.values():
                laws.grows_with_the_text(self.format, marker + unit)

    # -- what the tests share --

    def _cases(self) -> Iterable[Case]:
        files = [self.cases] if isinstance(self.cases, str | Path) else self.cases
        here = Path(inspect.getfile(type(self))).parent
        return (case for file in files for case in cases.load(here / file))

    def _format_of(self, case: Case) -> Format:
        """The format of a case, of which at least one half is the one under test."""
        mine = self.format
        tools = mine if case.tool_parser in mine.tool_names else _known(tool_parser=case.tool_parser)
        reasoning = (
            mine if case.reasoning_parser in mine.reasoning_names else _known(reasoning_parser=case.reasoning_parser)
        )
        if mine not in (tools, reasoning):
            names = ", ".join(dict.fromkeys((*mine.tool_names, *mine.reasoning_names)))
            raise ConfigurationError(f"case {case.id}: neither of its parsers is one of {mine.name}: {names}")
        return combine(reasoning, tools)

    def _check(self, case: Case, ways: Iterable[Way]) -> None:
        if failures := list(cases.check_in(self._format_of(case), case, ways)):
            raise laws.BrokenLaw(_told(failures))

    def _randoms(self, request: pytest.FixtureRequest) -> Iterable[Random]:
        """As many as there are examples, each with a seed of its own."""
        examples = request.config.getoption("--streamsieve-examples", EXAMPLES)
        seed = request.config.getoption("--streamsieve-seed", SEED)
        return (Random(f"{self.format.name} {seed} {number}") for number in range(examples))


def _known(*, tool_parser: str | None = None, reasoning_parser: str | None = None) -> Format | None:
    return registry.select(tool_parser=tool_parser, reasoning_parser=reasoning_parser)


def _told(failures: Sequence[Failure]) -> str:
    """The first few failures, as a person reads them."""
    lines = [f"{len(failures)} ways fail"]
    for failure in failures[:3]:
        lines.append(f"{failure.way} of {failure.case.raw!r}")
        lines += [f"  {it.tray}: expected {it.expected!r}, got {it.got!r}" for it in failure.differences]
    return "\n".join(lines)


def _skip(why: str) -> None:
    import pytest

    pytest.skip(why)
