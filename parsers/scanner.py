"""The text of a reply as it comes, read by generators that wait for more.

A grammar is written as a generator function over a `Reader`: straight code that takes text and waits
with a bare `yield` where the text runs out. The machine resumes it when more has come, and throws
`EndOfText` into that same `yield` once nothing more will. So a grammar never sees how the text was
cut, and one that needs nothing special at the end does not mention it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from streamsieve.parsers.tokens import SpecialTokens, TokenPlaces

T = TypeVar("T")
Write = Callable[[str], object]
Search = Callable[[str], re.Match[str] | None]
Reading = Generator[None, None, T]
"""A grammar in progress: yields where it waits for text, returns what it read."""


class Plain(NamedTuple):
    """Text in which `search` finds nothing may go straight to `write`."""

    search: Search
    write: Write


_MANY_PLACES = 1024
_SPACE = re.compile(r"\s*")


class EndOfText(Exception):
    """Thrown into a grammar that waits when the reply is over."""


class Malformed(Exception):
    """What comes cannot be what the grammar wants; the reader stands at the first character that does not fit."""


class Markers:
    """A closed set of literals to look for, compiled so that the whole set costs one search.

    Of two that start at one place the longer counts. `search` and `match` also find the beginning of
    a marker at the very end of the text, where the rest may still follow; `is_partial` tells.
    """

    __slots__ = ("_prefixes", "first", "literals", "match", "match_whole", "search", "search_whole")

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals = frozenset(literal for literal in literals if literal)
        self._prefixes = frozenset(one[:size] for one in self.literals for size in range(1, len(one)))
        self.first = frozenset(one[0] for one in self.literals)
        trie: dict[str, object] = {}
        for literal in self.literals:
            node = trie
            for character in literal:
                node = node.setdefault(character, {})  # type: ignore[assignment]  # a dict of such dicts
            node[""] = None
        growing = re.compile(_branches(trie) if trie else r"(?!)")
        longest_first = sorted(self.literals, key=len, reverse=True)
        self.search, self.match = growing.search, growing.match
        whole = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self.search_whole, self.match_whole = whole.search, whole.match

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(*literals: str) -> Markers:
        """The set of these, made once: compiling one costs some thirty deltas, and grammars ask for the same few."""
        return Markers(literals)

    def is_partial(self, found: re.Match[str]) -> bool:
        """Whether `found` may still grow into a marker, or into a longer one."""
        return found.end() == len(found.string) and found.group() in self._prefixes


def _branches(trie: dict[str, object]) -> str:
    """A pattern for the literals below `trie`; each step may also be where the text ends."""
    branches = []
    for character, below in sorted(trie.items()):
        if isinstance(below, dict):
            inner = _branches({key: value for key, value in below.items() if key})
            stop = "|" if "" in below else ""
            branches.append(re.escape(character) + (f"(?:\\Z|{inner}{stop})" if inner else ""))
    return "|".join(branches)


_NO_MARKERS = Markers(())


class Reader:
    """The part of a reply that is not read yet, and, while it may have to be given back, what was.

    `text` from `position` on is unread. Offsets count characters from the start of the reply.
    Whoever waits (a bare `yield`) sets `position` first and takes up `text` and `position` anew after.
    """

    __slots__ = ("_copied", "_kept", "_kept_from", "base", "copying", "cut", "ended", "ends", "places", "plain",
                 "position", "text", "turn_ended")  # fmt: skip

    def __init__(self) -> None:
        self.text = ""
        self.position = 0
        self.ended = False
        self.cut = False  # the reply ended because of the token limit
        self.ends = _NO_MARKERS
        """End-of-turn tokens, which mean nothing wherever white space does."""
        self.turn_ended = False
        self.copying: Write | None = None
        """Where what is read goes at the end of each delta (see `copy`)."""
        self.plain: Plain | None = None
        """Set while a grammar waits in plain text."""
        self.places: TokenPlaces | None = None
        """Set where token ids tell markers from the same characters typed."""
        self._copied = 0
        self.base = 0  # offset of text[0]
        self._kept: list[str] = []
        self._kept_from: int | None = None

    # -- filled by the machine --

    def push(self, text: str) -> None:
        """Append the next text of the reply."""
        self.plain = None
        position = self.position
        if self._kept_from is not None:
            self._kept.append(self.text[max(self._kept_from - self.base, 0) : position])
        self.base += position
        self.text = text if position == len(self.text) else self.text[position:] + text
        self.position = self._copied = 0

    def note_tokens(self, places: Iterable[tuple[int, int]], tokens: SpecialTokens) -> None:
        """Special tokens stand at these places of the text that is pushed next."""
        if self.places is None:
            self.places = TokenPlaces(tokens)
        elif len(self.places) > _MANY_PLACES:
            self.places.forget_before(self.base if self._kept_from is None else self._kept_from)
        end = self.base + len(self.text)
        for start, stop in places:
            self.places.note(end + start, end + stop)

    def wait_in_plain_text(self, plain: Plain) -> None:
        """Say, before a wait with all text read, what text need not wake the grammar.

        It does all the same while what is read has to be kept.
        """
        if self._kept_from is None:
            self.plain = plain

    def flush(self) -> None:
        """Give what was read since the last time to where it is copied."""
        if self.copying is not None and self.position > self._copied:
            self.copying(self.text[self._copied : self.position])
            self._copied = self.position

    # -- text that may have to be given back --

    @property
    def offset(self) -> int:
        """Where the next unread character stands in the reply."""
        return self.base + self.position

    def keep(self, back: int = 0) -> int:
        """Keep what is read from `back` characters before here on; returns that offset.

        Those characters are what was just read. Where text is kept already, it goes on being kept.
        """
        mark = self.base + self.position - back
        if self._kept_from is None:
            self._kept_from = mark
        return mark

    def forget(self) -> None:
        """Stop keeping; nothing from before here can be given back any more."""
        self._kept = []
        self._kept_from = None

    def since(self, mark: int) -> str:
        """The text read from `mark` on, which must be kept."""
        first = self._kept_from or 0
        window = self.text[max(first - self.base, 0) : self.position]
        return ("".join(self._kept) + window)[mark - first :]

    def rewind(self, mark: int) -> None:
        """Unread the text from `mark` on, which must be kept and goes on being kept up to there."""
        first = self._kept_from or 0
        before, again = self.since(first)[: mark - first], self.since(mark)
        self.text = again + self.text[self.position :]
        self.base, self.position = mark, 0
        self._kept = [before]

    # -- what grammars are made of --

    @property
    def is_over(self) -> bool:
        """Whether the reply is over and all of it is read."""
        return self.ended and self.position == len(self.text)

    @property
    def may_end(self) -> bool:
        """Whether the reply is over, or its turn was with the white space taken last."""
        return self.turn_ended or self.is_over

    def ends_within(self, markers: Markers) -> bool:
        """Whether the reply is over, and what is unread of it is the beginning of a marker."""
        found = markers.match(self.text, self.position) if self.ended else None
        return found is not None and found.end() == len(self.text)

    def copy(self, write: Write, reading: Reading[None]) -> Reading[None]:
        """Let `reading` read, and give all that it reads to `write`: in one piece a delta, or less."""
        self.copying, self._copied = write, self.position
        try:
            yield from reading
        finally:
            self.flush()
            self.copying = None

    def copy_as(self, text: str) -> None:
        """Take the next character; where what is read is copied, `text` stands for it."""
        self.flush()
        self.position += 1
        self._copied = self.position
        if self.copying is not None:
            self.copying(text)

    def space(self) -> Reading[str]:
        """Take white space, as much as there is, and the end-of-turn tokens in it, which are not returned.

        `turn_ended` tells whether there were any: where they stand for the end of the reply, they are it.
        """
        taken = yield from self.run(_SPACE)
        self.turn_ended = False
        while self._may_be_an_end() and (yield from self.takes(self.ends)):
            self.turn_ended = True
            taken += yield from self.run(_SPACE)
        return taken

    def _may_be_an_end(self) -> bool:
        return self.position < len(self.text) and self.text[self.position] in self.ends.first

    def drop_end(self) -> Reading[bool]:
        """Take an end-of-turn token, where one comes; it is not copied. Raises EndOfText where one is cut off."""
        if not self._may_be_an_end():
            return False
        self.flush()
        dropped = yield from self.takes(self.ends)
        is_cut = dropped is None and self.ends_within(self.ends)
        if is_cut:
            self.position = len(self.text)
        self._copied = self.position
        if is_cut:
            raise EndOfText
        return dropped is not None

    def skip(self, pattern: re.Pattern[str]) -> Reading[None]:
        """Take a run as `run` does, where nobody wants to know it. Raises EndOfText where it meets the end."""
        while True:
            found = pattern.match(self.text, self.position)
            self.position = found.end() if found else self.position
            if self.position < len(self.text):
                return
            yield

    def run(self, pattern: re.Pattern[str]) -> Reading[str]:
        """Take the longest run of what `pattern`, one repeated character class, matches."""
        taken: list[str] = []
        while True:
            found = pattern.match(self.text, self.position)
            if found is None:
                break
            taken.append(found.group())
            self.position = found.end()
            if self.position < len(self.text):
                break
            try:
                yield
            except EndOfText:
                break
        return taken[0] if len(taken) == 1 else "".join(taken)

    def peek(self) -> Reading[str]:
        """The next character, which stays unread. Raises EndOfText where there is none."""
        while self.position == len(self.text):
            yield
        return self.text[self.position]

    def peek_after_space(self) -> Reading[str]:
        """Take white space, then the next character, which stays unread. Raises EndOfText where there is none."""
        yield from self.space()
        return (yield from self.peek())

    def take(self, literal: str) -> Reading[None]:
        """Take exactly `literal`. Raises Malformed at its first character that does not come."""
        begin = self.offset
        for character in literal:
            if (yield from self.peek()) != character:
                raise Malformed
            self.position += 1
        if self.places is not None and self.places.are_typed(literal, begin):
            raise Malformed

    def take_tag(self, tag: str) -> Reading[None]:
        """Take exactly `tag`, or nothing: a marker that comes in its place begins as it does. Raises Malformed then."""
        while not self.text.startswith(tag, self.position):
            if not tag.startswith(self.text[self.position :]):
                raise Malformed
            try:
                yield
            except EndOfText:
                self.position = len(self.text)
                raise
        self.position += len(tag)

    def sees(self, markers: Markers) -> Reading[str | None]:
        """The marker that comes next, which stays unread, or None where something else or nothing does."""
        while True:
            found = markers.match(self.text, self.position)
            if found is not None and not markers.is_partial(found):
                return None if self._is_typed(found) else found.group()
            if found is None and self.position < len(self.text):
                return None
            try:
                yield
            except EndOfText:
                whole = markers.match_whole(self.text, self.position)
                return None if whole is None or self._is_typed(whole) else whole.group()

    def takes(self, markers: Markers) -> Reading[str | None]:
        """As `sees`, and the marker is taken."""
        seen = yield from self.sees(markers)
        if seen is not None:
            self.position += len(seen)
        return seen

    def find(self, markers: Markers, write: Write, plain: Plain | None = None) -> Reading[str | None]:
        """Give text to `write` up to the next marker, which is taken and returned; None at the end of the text.

        This is where a reply spends its time: a delta that holds nothing that could begin a marker
        costs one search and is passed on without a copy. `plain` says that of some of these deltas
        nothing else need be looked at either, and where they go.
        """
        search = markers.search
        plain = plain or Plain(search, write)
        while True:
            text, position = self.text, self.position
            found = search(text, position)
            if self.places is not None:
                found = self._untyped(search, found)
            if found is None:
                if position < len(text):
                    write(text[position:] if position else text)
                    self.position = len(text)
                self.wait_in_plain_text(plain)
            else:
                start = found.start()
                if start > position:
                    write(text[position:start])
                if not markers.is_partial(found):
                    self.position = found.end()
                    return found.group()
                self.position = start
            try:
                yield
            except EndOfText:
                break
        found = self._untyped(markers.search_whole, markers.search_whole(self.text, self.position))
        if (end := found.start() if found else len(self.text)) > self.position:
            write(self.text[self.position : end])
        self.position = found.end() if found else end
        return found.group() if found else None

    def _is_typed(self, found: re.Match[str]) -> bool:
        return self.places is not None and self.places.are_typed(found.group(), self.base + found.start())

    def _untyped(
        self, search: Callable[[str, int], re.Match[str] | None], found: re.Match[str] | None
    ) -> re.Match[str] | None:
        """`found`, or where that is only typed the next that is not."""
        while found is not None and self._is_typed(found):
            found = search(self.text, found.start() + 1)
        return found
