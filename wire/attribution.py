"""Which text of a reply each of its tokens became part of: log probabilities and ids go where their text goes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from streamsieve.parsers.events import CallArguments, CallStart, Content, Event, Reasoning
from streamsieve.parsers.tokens import SpecialTokens
from streamsieve.wire.json_text import JsonObject

OF_THE_TEXT = ("logprobs", "token_ids")
"""What a choice says of its text, token by token (`token_ids`: vLLM's `return_token_ids`)."""


@dataclass(slots=True)
class Token:
    """A token of the reply, or several that the upstream gave no way to tell apart."""

    text: str
    logprobs: list[JsonObject] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many tokens these are; 0 where it is not known."""
        return len(self.ids) or len(self.logprobs)


def tokens_of(choice: JsonObject, text: str, special: SpecialTokens | None = None) -> list[Token]:
    """`text`, which is the text of `choice`, cut into the tokens that its log probabilities and ids tell of.

    None at all where these tell of nothing. Where ids alone tell of them they are cut at `special` tokens only,
    and where they do not add up to the text not at all.
    """
    logprobs, ids = _logprobs(choice), _ids(choice)
    match max(len(logprobs), len(ids)):
        case 0:
            return []
        case 1:
            return [Token(text, logprobs, ids)]
    pieces = _pieces(logprobs)
    if "".join(pieces) == text and len(ids) in (0, len(pieces)):
        return [Token(piece, logprobs[at : at + 1], ids[at : at + 1]) for at, piece in enumerate(pieces)]
    if logprobs or special is None:
        return [Token(text, logprobs, ids)]
    return list(_between_special_tokens(text, ids, special))


def _between_special_tokens(text: str, ids: Sequence[int], special: SpecialTokens) -> Iterator[Token]:
    first, at = 0, 0
    for place, one in enumerate(ids):
        marker = special.texts.get(one)
        start = text.find(marker, at) if marker else -1
        if marker and start >= 0:
            if start > at:
                yield Token(text[at:start], [], [*ids[first:place]])
                first = place
            at = start + len(marker)
            yield Token(marker, [], [*ids[first : place + 1]])
            first = place + 1
    if at < len(text) or first < len(ids):
        yield Token(text[at:], [], [*ids[first:]])


def has_tokens(choice: JsonObject) -> bool:
    """Whether `choice` tells of its tokens."""
    return bool(_logprobs(choice) or _ids(choice))


def without_tokens(choice: JsonObject) -> JsonObject:
    """`choice`, telling nothing of its tokens."""
    return {name: None if name in OF_THE_TEXT else value for name, value in choice.items()}


def text_of_tokens(choice: JsonObject) -> str:
    """The text that the log probabilities of `choice` are of, markers and all."""
    return "".join(_pieces(_logprobs(choice)))


def _logprobs(choice: JsonObject) -> list[JsonObject]:
    match choice.get("logprobs"):
        case {"content": list(entries)}:
            return [entry for entry in entries if isinstance(entry, dict)]
    return []


def _ids(choice: JsonObject) -> list[int]:
    ids = choice.get("token_ids")
    return [one for one in ids if isinstance(one, int)] if isinstance(ids, list) else []


def _pieces(logprobs: Sequence[JsonObject]) -> list[str]:
    """The text of each entry. One that ends within a character gives that character to the entry that ends it."""
    pieces: list[str] = []
    begun = b""
    for entry in logprobs:
        text, octets = entry.get("token"), entry.get("bytes")
        if isinstance(octets, list) and all(isinstance(octet, int) and 0 <= octet < 256 for octet in octets):
            begun += bytes(octets)
        elif isinstance(text, str):
            begun += text.encode("utf-8", "surrogatepass")
        try:
            pieces.append(begun.decode())
        except UnicodeDecodeError:
            pieces.append("")
        else:
            begun = b""
    return pieces


@dataclass(slots=True)
class Told:
    """An event, and the tokens of its text. `passed`: the ids of those before it that are nobody's text."""

    event: Event | None
    tokens: list[Token] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)


class Attribution:
    """The tokens of one choice that were fed and whose text is not out yet.

    Each token goes with the first event that has some of its text. Markers and framing go with none.
    Text that comes out as it was written is found at once, or behind markers; text that was rewritten
    (typed values, stages) by its end, or not at all.

    `reasoning_tokens`: how many tokens the thinking took, without its markers; None where it is not known:
    text came without its tokens, or tokens that cannot be told apart held a border of it and more.
    """

    def __init__(self, *, from_the_start: bool = True) -> None:
        """`from_the_start`: no text of the reply came before."""
        self.reasoning_tokens: int | None = 0 if from_the_start else None
        self._waiting: deque[tuple[int, int, Token]] = deque()  # where it starts and ends in the reply
        self._raw: list[str] = []  # the text that waits, and some before it
        self._start = self._out = self._end = 0  # of that: where it starts, what of it is out, where it ends
        self._thinking = False
        self._passed: list[int] = []

    @property
    def is_settled(self) -> bool:
        """Whether no token waits for its text."""
        return not self._waiting

    def push(self, token: Token) -> None:
        """The parser is fed this token's text now."""
        start, self._end = self._end, self._end + len(token.text)
        self._waiting.append((start, self._end, token))
        self._raw.append(token.text)

    def told(self, events: Sequence[Event]) -> list[Told]:
        """The events that came of what was pushed last, each with its tokens."""
        return [self._told(event) for event in events]

    def rest(self) -> list[int]:
        """The ids of what is left when the reply is over."""
        self._pass([token for _, _, token in self._waiting], None)
        self._waiting.clear()
        return self._taken_ids()

    def _told(self, event: Event) -> Told:
        text = _text(event)
        if not text:
            return Told(event)
        before: list[Token] = []
        if len(self._waiting) == 1 and self._waiting[0][2].text == text:  # nearly always
            tokens, is_split = [self._waiting.popleft()[2]], False
            self._raw.clear()
            self._start = self._out = self._end
        else:
            tokens, is_split = self._taken(text, before)
        self._pass(before, event)
        was_thinking, self._thinking = self._thinking, isinstance(event, Reasoning)
        is_border = was_thinking and all(map(_is_blank, before))  # else a marker has ended the thinking
        if is_split and (is_border or self._thinking):
            self.reasoning_tokens = None
        if self._thinking:
            self._count(tokens)
        return Told(event, tokens, self._taken_ids())

    def _taken(self, text: str, before: list[Token]) -> tuple[list[Token], bool]:
        """The tokens of the next text, and whether some are partly of another, white space apart, which was thought
        too; `before` gets those before them."""
        raw = "".join(self._raw)
        start, end = (self._start + place for place in _place(text, raw, self._out - self._start))
        tokens: list[Token] = []
        is_split = False
        while self._waiting and self._waiting[0][0] < start >= self._waiting[0][1]:
            before.append(self._waiting.popleft()[2])
        while self._waiting and self._waiting[0][0] < end:
            first, last, token = self._waiting.popleft()
            tokens.append(token)
            others = token.text[: max(0, start - first)] + token.text[max(0, end - first) :]
            is_split |= token.count > 1 and bool(others.strip())
            if last > end:  # what it says has gone with this event
                self._waiting.appendleft((end, last, Token("")))
        self._raw, self._out = [raw], end
        if end - self._start > self._end - end:  # cut seldom, so that many events of one text cost no more than it
            self._raw, self._start = [raw[end - self._start :]], end
        return tokens, is_split

    def _pass(self, tokens: Sequence[Token], event: Event | None) -> None:
        """These are markers and framing; white space between thinking and its marker was thought too."""
        self._passed += [one for token in tokens for one in token.ids]
        if self._thinking:
            self._count(takewhile(_is_blank, tokens))
        elif isinstance(event, Reasoning):
            self._count(takewhile(_is_blank, reversed(tokens)))

    def _count(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            if self.reasoning_tokens is not None:
                self.reasoning_tokens = self.reasoning_tokens + token.count if token.count or not token.text else None

    def _taken_ids(self) -> list[int]:
        passed, self._passed = self._passed, []
        return passed


def _is_blank(token: Token) -> bool:
    return token.text.isspace()


def _text(event: Event) -> str:
    match event:
        case Content(text) | Reasoning(text):
            return text
        case CallStart(name=name):
            return name
        case CallArguments(json=json):
            return json
    return ""


def _place(text: str, raw: str, at: int) -> tuple[int, int]:
    """Where in `raw`, not before `at`, what became `text` stands; nowhere is its end."""
    if raw.startswith(text, at):
        return at, at + len(text)
    if raw.endswith(text, at):
        return len(raw) - len(text), len(raw)
    found = raw.find(text, at)
    if found >= 0:
        return found, found + len(text)
    alike = 0
    while alike < min(len(raw) - at, len(text)) and raw[-1 - alike] == text[-1 - alike]:
        alike += 1
    return len(raw) - alike, len(raw)


def joined(told: Iterable[Told]) -> list[Told]:
    """Neighbours that are more of the same text as one, but where ids that are nobody's stand between them."""
    out: list[Told] = []
    for one in told:
        match (out[-1].event if out and not one.passed else None), one.event:
            case Content(text), Content(more):
                event: Event = Content(text + more)
            case Reasoning(text), Reasoning(more):
                event = Reasoning(text + more)
            case CallArguments(index, text), CallArguments(same, more) if index == same:
                event = CallArguments(index, text + more)
            case _:
                out.append(one)
                continue
        out[-1] = Told(event, out[-1].tokens + one.tokens, out[-1].passed)
    return out
