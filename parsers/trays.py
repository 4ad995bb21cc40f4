"""The three trays of a reply as events, with the contract's white space (rule 4) seen to."""

from __future__ import annotations

from streamsieve.parsers.events import CallArguments, Content, Event, Reasoning, Repaired
from streamsieve.parsers.scanner import Write


class _TextTray:
    """One tray of text. White space at its end waits until something visible follows.

    `flows`: something visible has come and no white space waits, so visible text may go out as it is.
    """

    __slots__ = ("flows", "space", "started")

    def __init__(self) -> None:
        self.started = self.flows = False
        self.space: list[str] = []

    def take(self, text: str, *, strip: bool) -> str:
        """The part of what waits and `text` that may go out; `strip` where white space at the start is framing."""
        visible = text.rstrip()
        if not visible:
            self.space.append(text)
            self.flows = False
            return ""
        out = "".join(self.space) + visible
        if not self.started and strip:
            out = visible.lstrip()
        self.started = True
        self.flows = len(visible) == len(text)
        self.space = [] if self.flows else [text[len(visible) :]]
        return out


class Trays:
    """Where a machine puts what it has read; `events` is what came out since it was last taken.

    `marked`: a marker has been read, so white space before the first visible content is framing.
    `folded`: nobody wants reasoning told apart, so it is content.
    With `hold_reasoning` it waits until visible content or a call comes; where neither does, it is the content.
    """

    __slots__ = ("_content", "_held_reasoning", "_reasoning", "_show_reasoning", "_trailing_call", "events",
                 "folded", "marked")  # fmt: skip

    def __init__(self, *, show_reasoning: bool, hold_reasoning: bool = False) -> None:
        self.events: list[Event] = []
        self.marked = self.folded = False
        self._show_reasoning = show_reasoning
        self._reasoning = _TextTray()
        self._content = _TextTray()
        self._trailing_call = False
        self._held_reasoning: list[str] | None = [] if hold_reasoning else None

    def reasoning(self, text: str) -> None:
        """Text for the reasoning tray."""
        if not self._reasoning.flows or text[-1:].isspace():
            if self.folded:
                return self.content(text)
            text = self._reasoning.take(text, strip=True)
        if text and self._held_reasoning is not None:
            self._held_reasoning.append(text)
        elif text and self._show_reasoning:
            self.events.append(Reasoning(text))

    def content(self, text: str) -> None:
        """Text for the content tray."""
        if not self._content.flows or text[-1:].isspace():
            text = self._content.take(text, strip=self.marked)
        if text:
            if self._held_reasoning is not None:
                self._answered(self._held_reasoning)
            self._trailing_call = False
            self.events.append(Content(text))

    def call(self, events: list[Event]) -> None:
        """A call, or the beginning of one, came here."""
        if self._held_reasoning is not None:
            self._answered(self._held_reasoning)
        self.marked = self._trailing_call = True
        self.events += events

    def _answered(self, held: list[str]) -> None:
        """The reply has more than reasoning: `held` is no content."""
        self._held_reasoning = None
        if held and self._show_reasoning:
            self.events.append(Reasoning("".join(held)))

    def arguments(self, index: int) -> Write:
        """What takes the next argument texts, none empty, of a call that is out already."""

        def write(json: str) -> None:
            self.events.append(CallArguments(index, json))

        return write

    def repaired(self, offset: int, rule: str) -> None:
        """The reply broke its format at `offset`."""
        self.events.append(Repaired(offset, rule))

    def close(self) -> None:
        """The reply is over: white space that nothing visible followed is content or framing now."""
        framing = self._trailing_call if self._content.started else self.marked or self._reasoning.started
        if self._content.space and not framing:
            self.events.append(Content("".join(self._content.space)))
        self._content.space = []
        if self._held_reasoning:
            self.events.append(Content("".join(self._held_reasoning)))
