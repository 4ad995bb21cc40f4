"""The laws that hold for every format and every reply, well-formed or not, each as a function that tries it.

The numbers are the contract's rules. A law that is broken raises `BrokenLaw`, which says on what text;
whoever tries them brings the texts (`streamsieve.parsers.conformance.specimens`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from streamsieve.parsers.conformance.specimens import PROSE, Tray, asked, cut, restored, told
from streamsieve.parsers.errors import Inexpressible
from streamsieve.parsers.events import CallArguments, Content, Event, Reasoning
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message

Answer = tuple[str | None, str | None, list[tuple[str, str]], str | None]


class BrokenLaw(AssertionError):
    """A format does not keep a law; the message says which, and where it shows."""


def answer(message: Message) -> Answer:
    """What of a message is compared: ids are random."""
    called = [(call.name, call.arguments) for call in message.tool_calls]
    return message.reasoning, message.content, called, message.finish_reason


def one_answer(format: Format, text: str, request: Request, finish: str | None, sizes: Sequence[int]) -> None:
    """The answer does not depend on the cuts; parsed whole it differs only where a real call broke (rules 1 and 7).

    `sizes`: as for `cut`. Ids are unique, and a call that is held until it is complete is one JSON object.
    """
    at_once = read(format, [text], request, finish)
    pieces = cut(text, sizes)
    for cuts in (list(text), pieces):
        _same("one answer, however cut", text, read(format, cuts, request, finish), at_once)
    whole = read(format, [text], request, finish, whole=True)
    _same("one answer, whole", text, read(format, pieces, request, finish, whole=True), whole)
    if not any(repair.rule == "broken_call" for repair in whole.repairs):
        _same("streamed is whole", text, at_once, whole)
    complete = read(format, pieces, request, finish, deliver="complete")
    _same("held calls", text, complete, read(format, [text], request, finish, deliver="complete", whole=True))
    for call in complete.tool_calls:
        _must(isinstance(_value(call.arguments), dict), f"a complete call is one JSON object: {call} of {text!r}")
    ids = [call.id for call in at_once.tool_calls]
    _must(len({*ids}) == len(ids), f"ids are unique: {ids} of {text!r}")


def keeps_plain_text(format: Format, text: str, finish: str | None) -> None:
    """Text without any beginning of a marker, nor white space at its ends, comes out as it is (rules 2 and 3).

    Where the format rewrites escapes, those are left out.
    """
    if format.rewriting:
        text = text.replace("\\", "")
    message = read(format, list(text), asked(format), finish)
    kept = (message.reasoning or "") + (message.content or "")
    _must(
        kept == restored(format) + text and not message.tool_calls,
        f"plain text is kept: {text!r} came out as {message}",
    )


def invents_nothing(format: Format, text: str) -> None:
    """Each text tray is a subsequence of the reply (rule 3), but where the format rewrites it."""
    if format.rewriting:
        return
    message = read(format, list(text), asked(format))
    for tray in (message.reasoning, message.content):
        rest = iter(restored(format) + text)
        _must(all(character in rest for character in tray or ""), f"nothing is invented: {tray!r} of {text!r}")


def reads_what_it_renders(format: Format, message: Message, sizes: Sequence[int]) -> bool:
    """`parse(render(m)) == m` at every cut; returns whether the format can say `message` at all."""
    request = asked(format)
    try:
        text = format.render(message, request)
    except Inexpressible:
        return False
    for pieces in ([text], list(text), cut(text, sizes)):
        found = read(format, pieces, request)
        _must(said(found) == said(message), f"what is rendered is read: {message} as {text!r} came back as {found}")
    return True


def said(message: Message) -> tuple[str | None, str | None, list[tuple[str, object]]]:
    """What a message says: arguments as values, an empty text as none."""
    called = [(call.name, _value(call.arguments)) for call in message.tool_calls]
    return message.reasoning or None, message.content or None, called


def leaves_at_once(format: Format, tray: Tray, size: int) -> None:
    """Visible text that could not begin a marker leaves in the `feed` it came in; so does a string argument."""
    if restored(format):
        return  # nothing that could be told
    text = told(format, tray)
    start = text.index(PROSE) + 8
    machine = format.machine(asked(format))
    machine.feed(text[:start])
    for at in range(start, start + len(PROSE) - 32, size):
        piece = text[at : at + size]
        out = "".join(map(_text, machine.feed(piece)))
        _must(out.strip() == piece.strip(), f"deltas leave at once: {piece!r} held back behind {text[at - 20 : at]!r}")


def sends_nothing_for_a_marker(format: Format) -> None:
    """A delta that is only a think marker gives no text, and the next one goes to the right tray (rules 2 and 5)."""
    if format.reasoning is None or restored(format):
        return
    opener, closer = format.reasoning.pairs[0]
    machine = format.machine(asked(format))
    for marker, text, tray in ((opener, "a", Reasoning("a")), (closer, "b", Content("b"))):
        alone = [event for event in machine.feed(marker) if isinstance(event, Content | Reasoning)]
        _must(not alone, f"a marker alone sends nothing: {marker!r} gave {alone}")
        then = machine.feed(text)
        _must(then == [tray], f"a marker alone sends nothing: {text!r} behind {marker!r} gave {then}")


def grows_with_the_text(format: Format, unit: str, length: int = 2_400) -> None:
    """Twice a text, however hostile, takes about twice the calls (rule 13). `unit` is what the text repeats."""
    count = length // len(unit)
    once, twice = work(format, unit * count, 7), work(format, unit * 2 * count, 7)
    _must(twice < 2.6 * once + 300, f"work grows with the text alone: {unit!r} took {once} calls, twice it {twice}")


def work(format: Format, text: str, size: int) -> int:
    """Function calls, of Python and of C, that reading `text` in deltas of `size` characters takes."""
    count = 0

    def tally(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    machine = format.machine(asked(format))
    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        for at in range(0, len(text), size):
            machine.feed(text[at : at + size])
        machine.finish("stop")
    finally:
        sys.setprofile(before)
    return count


def _text(event: Event) -> str:
    match event:
        case Content(text) | Reasoning(text):
            return text
        case CallArguments(_, json):
            return json
    return ""


def _same(law: str, text: str, found: Message, expected: Message) -> None:
    if answer(found) != answer(expected):
        raise BrokenLaw(f"{law}: {text!r} gave {answer(found)}, else {answer(expected)}")


def _must(holds: bool, told: str) -> None:
    if not holds:
        raise BrokenLaw(told)


def _value(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
