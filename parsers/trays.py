"""The three trays of a reply as events, with the contract's white space (rule 4) seen to."""

from __future__ import annotations

from streamsieve.parsers.events import CallArguments, Content, Event, Reasoning, Repaired


class Trays:
    """Where a machine puts what it has read; `events` is what came out since it was last taken.

    White space at the end of what a tray holds so far waits here until something visible follows it
    or the reply is over.
    """

    __slots__ = ("_content_space", "_content_started", "_reasoning_space", "_reasoning_started", "_show_reasoning",
                 "_trailing_call", "events", "marked")  # fmt: skip

    def __init__(self, *, show_reasoning: bool) -> None:
        self.events: list[Event] = []
        self.marked = False
        """A marker has been read, so white space before the first visible content is framing."""
        self._show_reasoning = show_reasoning
        self._reasoning_started = self._content_started = False
        self._reasoning_space: list[str] = []
        self._content_space: list[str] = []
        self._trailing_call = False

    def reasoning(self, text: str) -> None:
        """Text for the reasoning tray."""
        visible = text.rstrip()
        if not visible:
            if self._reasoning_started:
                self._reasoning_space.append(text)
            return
        held = len(text) != len(visible)
        tail = text[len(visible) :] if held else ""
        if not self._reasoning_started:
            self._reasoning_started = True
            visible = visible.lstrip()
        elif self._reasoning_space:
            visible = "".join(self._reasoning_space) + visible
            self._reasoning_space = []
        if held:
            self._reasoning_space.append(tail)
        if self._show_reasoning:
            self.events.append(Reasoning(visible))

    def content(self, text: str) -> None:
        """Text for the content tray."""
        visible = text.rstrip()
        if not visible:
            if text:
                self._content_space.append(text)
            return
        held = len(text) != len(visible)
        tail = text[len(visible) :] if held else ""
        if self._content_started:
            if self._content_space:
                visible = "".join(self._content_space) + visible
                self._content_space = []
        else:
            self._content_started = True
            visible = visible.lstrip() if self.marked else "".join(self._content_space) + visible
            self._content_space = []
        self._trailing_call = False
        if held:
            self._content_space.append(tail)
        self.events.append(Content(visible))

    def call(self, events: list[Event]) -> None:
        """A call, or the beginning of one, came here."""
        self.marked = self._trailing_call = True
        self.events += events

    def arguments(self, index: int, json: str) -> None:
        """The next argument text of a call that is out already."""
        self.events.append(CallArguments(index, json))

    def repaired(self, offset: int, rule: str) -> None:
        """The reply broke its format at `offset`."""
        self.events.append(Repaired(offset, rule))

    def close(self) -> None:
        """The reply is over: white space that nothing visible followed is content or framing now."""
        if self._content_started:
            framing = self._trailing_call
        else:
            framing = self.marked or self._reasoning_started
        if self._content_space and not framing:
            self.events.append(Content("".join(self._content_space)))
        self._content_space = []
