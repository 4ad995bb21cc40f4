"""The items of a response that the upstream made, with the raw text of its messages sorted."""

from __future__ import annotations

from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.responses.output import Output
from streamsieve.wire.responses.reply_object import INCOMPLETE
from streamsieve.wire.text_reader import TextReader, open_text

_SORTED = ("reasoning", "function_call")
"""An upstream that sends one of these sorts its replies itself: from there on its messages are not parsed."""

_FINISH_REASONS = {said: reason for reason, said in INCOMPLETE.items()}


class Sorter:
    """Takes the upstream's items in their order, a message's text as it comes.

    Each message is a reply of the model by itself, and has a parser of its own. It ends where the next
    item begins, or with the response. `output` holds what came of it all.
    """

    def __init__(self, prepared: Prepared, output: Output, *, whole: bool) -> None:
        """`whole`: each message comes in one piece."""
        self.output = output
        self._prepared = prepared
        self._whole = whole
        self._sorts = prepared.settings.parses
        self._places: dict[int, int | None] = {}  # of the upstream's other items in our output; None: left out
        self._read: set[int] = set()  # the upstream's messages that are parsed
        self._text: TextReader | None = None  # of the newest of these
        self._is_empty = True

    def is_read(self, index: int) -> bool:
        """Whether the upstream's item at this `output_index` is a message that is parsed."""
        return index in self._read

    def place(self, index: int) -> int | None:
        """Where an item that is taken as it is stands in our output; None where it is not there."""
        return self._places.get(index)

    def knows(self, index: int) -> bool:
        """Whether the upstream has begun an item at this `output_index`."""
        return index in self._read or index in self._places

    async def begin(self, index: int, item: JsonObject) -> bytes:
        """The upstream's next item. The events are those of what ends and of what the item holds already."""
        out = await self.end("stop")
        if self._sorts and item.get("type") == "message":
            self._read.add(index)
            self._text = open_text(self._prepared, index, whole=self._whole)
            self._is_empty = True
            return out + await self._content(item)
        self._sorts = self._sorts and item.get("type") not in _SORTED
        is_hidden = item.get("type") == "reasoning" and not self._prepared.request.include_reasoning
        self._places[index] = None if is_hidden else self.output.put(item)
        return out

    async def text(self, delta: str, given: JsonObject) -> bytes:
        """More text of the newest message, none where that has ended; `given` tells of its tokens."""
        if self._text is None:
            return b""
        self._is_empty = False
        return self.output.add(await self._text.feed(delta, given))

    async def plain(self, delta: str) -> bytes:
        """More text of the newest message, which `is_steady`."""
        assert self._text is not None
        return self.output.plain(await self._text.events(delta))

    @property
    def is_steady(self) -> bool:
        """Whether there is no more to do for text than to parse it."""
        return self._text is not None and self._text.is_steady

    async def done(self, index: int, item: JsonObject) -> bytes:
        """What the upstream says that an item has become; a message's text counts where none of it came before."""
        if index in self._read:
            return await self._content(item) if self._is_empty else b""
        place = self._places.get(index)
        if place is not None:
            self.output.replace(place, item)
        return b""

    async def end(self, reason: str | None) -> bytes:
        """The newest message is over, where one is open. `reason`: the finish reason; None where it broke off."""
        text, self._text = self._text, None
        if text is None:
            return b""
        out = self.output.add(await text.finish(reason))
        await text.aclose()
        if reason is None:
            return out
        return out + self.output.close("completed" if reason == "stop" else "incomplete")

    async def aclose(self) -> None:
        """Free the parser that is open."""
        if self._text is not None:
            await self._text.aclose()

    async def _content(self, item: JsonObject) -> bytes:
        """The events of the parts of a message."""
        out = b""
        parts = item.get("content")
        for part in parts if isinstance(parts, list) else ():
            match part:
                case {"type": "output_text", "text": str(text)} if text:
                    out += await self.text(text, tokens_given(part))
                case {"type": "refusal", "refusal": str(text)}:
                    out += self.output.refuse(text)
        return out


def tokens_given(holder: JsonObject) -> JsonObject:
    """The log probabilities of a part or an event, in the place where a chat choice has them."""
    return {"logprobs": {"content": logprobs}} if (logprobs := holder.get("logprobs")) else {}


def finish_reason(response: JsonObject) -> str:
    """The finish reason that a response ended by."""
    match response:
        case {"incomplete_details": {"reason": str(reason)}}:
            return _FINISH_REASONS.get(reason, reason)
        case {"status": "incomplete"}:
            return "length"
    return "stop"
