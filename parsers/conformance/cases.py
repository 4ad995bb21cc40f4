"""The conformance kit: case files, the ways to run a case, and what differs from what it expects.

A case file holds one JSON object a line: a model's raw reply, the request it answered and the trays
that must come out (the contract, "Case files"). What fails comes back as data.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from streamsieve.parsers import registry
from streamsieve.parsers.events import Content
from streamsieve.parsers.format import Format
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector, Message

Answer = Mapping[str, object]
"""Trays by name: `reasoning`, `content`, `tool_calls`, `finish_reason`."""

TRAYS = ("reasoning", "content", "tool_calls", "finish_reason")


class CaseError(ValueError):
    """A line is no case; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a case file.

    `chunks`: the deltas as they were reported, where the case has its own.
    `expect` is None where the line only brings a reply to parse. `expect_stream` is what every streamed
    way gives; it differs from `expect` only for malformed calls (contract, rule 7).
    `soft`: reasoning and content are compared stripped, an empty string counting as null.
    `ignore`: trays that are not judged. `forbid`: what may be in neither text tray.
    `special`: markers that are single special tokens in the model's tokenizer.
    `response_template`: the template that the tokenizer ships, which the parser `hf` reads by.
    """

    id: str
    tool_parser: str | None
    reasoning_parser: str | None
    request: Request
    raw: str
    chunks: tuple[str, ...] | None
    engine_finish: str | None
    expect: Answer | None
    expect_stream: Answer | None
    soft: bool
    ignore: frozenset[str]
    forbid: tuple[str, ...]
    special: tuple[str, ...]
    response_template: Mapping[str, object] | None = None

    def format(self) -> Format | None:
        """The format that the case's parser names choose. Raises ConfigurationError where there is none."""
        return registry.select(
            tool_parser=self.tool_parser,
            reasoning_parser=self.reasoning_parser,
            response_template=self.response_template,
        )


def load(path: Path) -> Iterator[Case]:
    """The cases of a file, blank lines left out. Raises CaseError with file and line number."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield read(line)
                except CaseError as error:
                    raise CaseError(f"{path}:{number}: {error}") from error


def read(line: str | bytes) -> Case:
    """One line of a case file. Raises CaseError."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CaseError(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise CaseError("not a JSON object")
    chunks = _strings(fields, "chunks")
    raw = fields.get("raw", None if chunks is None else "".join(chunks))
    if not isinstance(raw, str):
        raise CaseError("raw: a string is missing, and so are chunks")
    if chunks is not None and "".join(chunks) != raw:
        raise CaseError("chunks: joined they are not raw")
    expect = _answer(fields, "expect")
    return Case(
        id=_text(fields, "id") or "",
        tool_parser=_text(fields, "tool_parser"),
        reasoning_parser=_text(fields, "reasoning_parser"),
        request=_request(fields),
        raw=raw,
        chunks=chunks,
        engine_finish=_text(fields, "engine_finish"),
        expect=expect,
        expect_stream=_answer(fields, "expect_stream") or expect,
        soft=_is_soft(fields),
        ignore=frozenset(_strings(fields, "ignore") or ()),
        forbid=_strings(fields, "forbid") or (),
        special=_strings(fields, "special") or (),
        response_template=_template(fields),
    )


def _request(fields: Mapping[str, object]) -> Request:
    more = {} if fields.get("request") is None else fields["request"]
    if not isinstance(more, dict):
        raise CaseError("request: not an object")
    return Request.from_body({"tools": fields.get("tools"), **more}, prompt_tail=_text(fields, "prompt_tail"))


def _template(fields: Mapping[str, object]) -> Mapping[str, object] | None:
    template = fields.get("response_template")
    if template is not None and not isinstance(template, dict):
        raise CaseError("response_template: not an object")
    return template


def _answer(fields: Mapping[str, object], key: str) -> Answer | None:
    answer = fields.get(key)
    if answer is None:
        return None
    if not isinstance(answer, dict):
        raise CaseError(f"{key}: not an object")
    if unknown := set(answer) - set(TRAYS):
        raise CaseError(f"{key}: unknown tray {min(unknown)!r}; the trays are {', '.join(TRAYS)}")
    calls = answer.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) and "name" in call for call in calls):
        raise CaseError(f"{key}: tool_calls is no list of calls with a name")
    return answer


def _text(fields: Mapping[str, object], key: str) -> str | None:
    text = fields.get(key)
    if text is not None and not isinstance(text, str):
        raise CaseError(f"{key}: not a string")
    return text


def _strings(fields: Mapping[str, object], key: str) -> tuple[str, ...] | None:
    strings = fields.get(key)
    if strings is None:
        return None
    if not isinstance(strings, list) or not all(isinstance(item, str) for item in strings):
        raise CaseError(f"{key}: not a list of strings")
    return tuple(strings)


def _is_soft(fields: Mapping[str, object]) -> bool:
    if (compare := fields.get("compare", "exact")) not in ("exact", "soft"):
        raise CaseError(f"compare: {compare!r} is neither exact nor soft")
    return compare == "soft"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to hand a reply to the machine; `chunks` is None where it is parsed whole."""

    name: str
    chunks: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What one tray should have held, and what it held. `tray` is "error" where the parser raised."""

    tray: str
    expected: object
    got: object


@dataclass(frozen=True, slots=True)
class Failure:
    """One way in which a case did not come out as it expects."""

    case: Case
    way: str
    differences: tuple[Difference, ...]


def whole() -> Way:
    """The whole reply at once, as the body of an answer that was not streamed."""
    return Way("whole", None)


def in_pieces(case: Case, size: int) -> Way:
    """Streamed in pieces of `size` characters."""
    pieces = tuple(case.raw[start : start + size] for start in range(0, len(case.raw), size))
    return Way("char by char" if size == 1 else f"{size} characters", pieces)


def cut_at(case: Case, position: int) -> Way:
    """Streamed in two pieces."""
    return Way(f"cut at {position}", (case.raw[:position], case.raw[position:]))


def ways(case: Case) -> Iterator[Way]:
    """Every way in which a case must hold: whole, character by character, its own chunks, every cut in two."""
    yield whole()
    yield in_pieces(case, 1)
    if case.chunks is not None:
        yield Way("own chunks", case.chunks)
    for position in range(1, len(case.raw)):
        yield cut_at(case, position)


def run(case: Case, way: Way, format: Format | None, *, deliver: Literal["stream", "complete"] = "stream") -> Message:
    """What comes out of `format` when the case's reply is handed to it in this way."""
    collector = Collector()
    if format is None:
        collector.add([Content(case.raw)] if case.raw else [])
    else:
        machine = format.machine(case.request, deliver=deliver, whole=way.chunks is None)
        for chunk in way.chunks if way.chunks is not None else (case.raw,):
            collector.add(machine.feed(chunk))
        collector.add(machine.finish(case.engine_finish))
    return collector.message(case.engine_finish, case.request)


def check(case: Case, chosen: Iterable[Way] | None = None) -> Iterator[Failure]:
    """Run a case in the chosen ways, all of them unless said, and tell what differs.

    Beyond what the case expects, all ways must agree to the letter of the arguments (contract, rule 1);
    for a malformed case all streamed ways. Raises ConfigurationError where its parser names do not work.
    """
    return check_in(case.format(), case, chosen)


def check_in(format: Format | None, case: Case, chosen: Iterable[Way] | None = None) -> Iterator[Failure]:
    """As `check`, in this format, whatever parser names the case has."""
    first: dict[int, Answer] = {}
    for way in ways(case) if chosen is None else chosen:
        expected = case.expect if way.chunks is None else case.expect_stream
        try:
            got = trays(run(case, way, format))
        except Exception as error:  # a parser must not raise (rule 12): that it did is what there is to tell
            yield Failure(case, way.name, (Difference("error", None, repr(error)),))
            continue
        same_as = first.setdefault(id(expected), got)
        if differences := judge(case, expected or {}, got) or _unlike(case, same_as, got):
            yield Failure(case, way.name, differences)


# Judging


def trays(message: Message) -> Answer:
    """A reply as case files write it; the ids of calls, which are not compared, are left out."""
    return {
        "reasoning": message.reasoning,
        "content": message.content,
        "tool_calls": [{"name": call.name, "arguments_text": call.arguments} for call in message.tool_calls],
        "finish_reason": message.finish_reason,
    }


def judge(case: Case, expected: Answer, got: Answer) -> tuple[Difference, ...]:
    """How `got`, as `trays` gives it, differs from what is expected of the case."""
    differences = []
    for tray in TRAYS:
        if tray in expected and tray not in case.ignore:
            alike = _same_calls if tray == "tool_calls" else _same_text if case.soft else operator.eq
            if not alike(expected[tray], got[tray]):
                differences.append(Difference(tray, expected[tray], got[tray]))
    for tray in ("reasoning", "content"):
        for word in case.forbid:
            if word in str(got[tray] or ""):
                differences.append(Difference(tray, f"nothing with {word!r} in it", got[tray]))
    return tuple(differences)


def _unlike(case: Case, first: Answer, got: Answer) -> tuple[Difference, ...]:
    """How one way's outcome differs from that of the first way run."""
    return tuple(
        Difference(tray, first[tray], got[tray])
        for tray in TRAYS
        if first[tray] != got[tray] and tray not in case.ignore
    )


def _same_text(expected: object, got: object) -> bool:
    return str(expected or "").strip() == str(got or "").strip()


def _same_calls(expected: object, got: object) -> bool:
    calls, found = cast("tuple[list[dict[str, object]], ...]", (expected or [], got))
    return len(calls) == len(found) and all(map(_same_call, calls, found))


def _same_call(expected: Mapping[str, object], got: Mapping[str, object]) -> bool:
    if expected["name"] != got["name"]:
        return False
    if "arguments_text" in expected:
        return expected["arguments_text"] == got["arguments_text"]
    return "arguments" not in expected or _canonical(expected["arguments"]) == _canonical_text(got["arguments_text"])


def _canonical(value: object) -> str:
    """One text for one JSON value: 1, 1.0 and true are three, the order of keys is none."""
    return json.dumps(value, sort_keys=True)


def _canonical_text(text: object) -> str | None:
    try:
        return _canonical(json.loads(str(text)))
    except (ValueError, RecursionError):
        return None
