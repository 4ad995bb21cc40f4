r"""Line breaks that a model writes as the two characters `\n`, made line breaks outside code and formulas."""

from __future__ import annotations

from streamsieve.parsers.scanner import EndOfText, Markers, Reader, Reading, Write

_BREAKS = (r"\n", r"\r", r"\r\n")
_BLOCKS = {"```": "```", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
_INLINE = ("`", "$")
_BLANK = ("\n\n", r"\n\n")
_BACKSLASH = r"\\"

_OUTSIDE = Markers((*_BREAKS, *_BLOCKS, *_INLINE, _BACKSLASH))
_BLOCK_ENDS = {opener: Markers((closer,)) for opener, closer in _BLOCKS.items()}
_IN_INLINE = {mark: Markers((mark, *_BREAKS, *_BLANK, _BACKSLASH)) for mark in _INLINE}
_INLINE_ENDS = {mark: Markers((mark, *_BLANK, _BACKSLASH)) for mark in _INLINE}


class LineBreaks:
    r"""Rewrites one run of text (see `rewriting`).

    Blocks of code and formulas last to their closing mark, or to the end. Inline ones do not go past a
    blank line, and where they are not closed they are none; so text behind a written line break in
    one waits until that is known. A doubled backslash is itself.
    """

    def __init__(self) -> None:
        self._out: list[str] = []
        self._restart()

    def _restart(self) -> None:
        self._reader = Reader()
        self._reading = _read(self._reader, self._out.append)
        next(self._reading)

    def feed(self, text: str) -> str:
        """What is certain of the text up to here and has not come out before."""
        reader = self._reader
        if reader.plain is not None and reader.plain.search(text) is None:
            return text
        reader.push(text)
        next(self._reading)
        return self._taken()

    def flush(self) -> str:
        """The rest: the run ends here."""
        if self._reader.plain is not None:  # nothing is held; what is open ends all the same
            self._restart()
            return ""
        self._reader.ended = True
        try:
            while True:
                self._reading.throw(EndOfText())
        except StopIteration:
            self._restart()
        return self._taken()

    def _taken(self) -> str:
        out = "".join(self._out)
        self._out.clear()
        return out


def _read(reader: Reader, write: Write) -> Reading[None]:
    while marker := (yield from reader.find(_OUTSIDE, write)):
        if marker in _BREAKS:
            write("\n")
            continue
        write(marker)
        if marker in _BLOCKS:
            write((yield from reader.find(_BLOCK_ENDS[marker], write)) or "")
        elif marker in _INLINE:
            yield from _inline(reader, marker, write)


def _inline(reader: Reader, mark: str, write: Write) -> Reading[None]:
    """Read what may be code or a formula, its opening mark written."""
    marker = yield from _find(reader, _IN_INLINE[mark], write)
    if marker is None or marker == mark or marker == "\n\n":
        write(marker or "")
        return
    start = reader.keep(len(marker))
    reader.position -= len(marker)
    if (yield from _find(reader, _INLINE_ENDS[mark], _hold)) == mark:
        write(reader.since(start))
    else:
        reader.rewind(start)
    reader.forget()


def _find(reader: Reader, markers: Markers, write: Write) -> Reading[str | None]:
    """As `Reader.find`, doubled backslashes passed over."""
    while (marker := (yield from reader.find(markers, write))) == _BACKSLASH:
        write(marker)
    return marker


def _hold(text: str) -> None:
    """Takes text that is kept until it is known what it is."""
