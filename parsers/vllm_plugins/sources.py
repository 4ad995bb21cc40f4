"""A vLLM parser as something that takes text and gives events, in a stream or at once.

vLLM's parsers hold state and read the text again as they please; each of these holds one instance, for
one reply. Model text never raises here: a parser that fails is left out of the rest of the reply, which
is content then, and that is reported.
"""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from streamsieve.parsers.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning, Repaired
from streamsieve.parsers.request import Request
from streamsieve.parsers.vllm_plugins.messages import (
    ChatCompletionRequest,
    ChatCompletionToolsParam,
    FunctionDefinition,
)
from streamsieve.parsers.vllm_plugins.text_only import NoTokenIds, NoTokenizer


class VllmParser(Protocol):
    """The methods of a parser that are called beside those that read a delta."""

    def extract_reasoning(self, model_output: str, request: object) -> tuple[object, object]: ...

    def extract_tool_calls(self, model_output: str, request: object) -> object: ...

    def get_remaining_unstreamed_args(self) -> str: ...


class PluginSource(ABC):
    """One reply in the hands of one parser; `whole`: `finish` reads all of the text at once."""

    def __init__(self, parser: type, request: Request, *, whole: bool, tokenizer: NoTokenizer | None = None) -> None:
        """Makes the instance; raises whatever its constructor does. `tokenizer`: to learn what it is asked for."""
        self._tokenizer = tokenizer or NoTokenizer()
        self._asked = asked(request)
        self.parser = _instance(parser, self._tokenizer, self._asked)
        self._whole = whole
        self._text = ""
        self.error: Exception | None = None
        """What the parser failed with."""

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Take the next text."""
        previous, self._text = self._text, self._text + text
        if self.error:
            return [Content(text)]
        if self._whole:
            return []
        return self._guarded(self._delta(previous, text), text, len(previous))

    def finish(self, reason: str | None) -> list[Event]:
        """The reply is over."""
        if self.error:
            return []
        return self._guarded(self._at_once() if self._whole else self._rest(), self._text if self._whole else "", 0)

    @abstractmethod
    def _delta(self, previous: str, delta: str) -> Iterator[Event]:
        """What `delta` adds behind `previous`."""

    @abstractmethod
    def _at_once(self) -> Iterator[Event]:
        """All of the text."""

    def _rest(self) -> Iterator[Event]:
        """What the parser held back, where it has a way to say so."""
        finish = getattr(self.parser, "finish_streaming", None)
        yield from self._message(finish() if finish else None)

    @abstractmethod
    def _message(self, message: object) -> Iterator[Event]:
        """The events of one of vLLM's delta messages, or of None."""

    def _called(self, method: str, previous: str, delta: str, *more: object) -> object:
        ids = NoTokenIds(self._tokenizer)
        return getattr(self.parser, method)(previous, previous + delta, delta, ids, ids, ids, *more)

    def _guarded(self, events: Iterator[Event], text: str, offset: int) -> list[Event]:
        """All events; where the parser fails before the first, `text` is content."""
        found: list[Event] = []
        try:
            found += events
        except Exception as error:  # a foreign parser may fail in any way
            self.error = error
            found = [*found, Repaired(offset, "broken_message"), *([Content(text)] if text else [])]
        return found


class ReasoningSource(PluginSource):
    """A reasoning parser."""

    def _delta(self, previous: str, delta: str) -> Iterator[Event]:
        yield from self._message(self._called("extract_reasoning_streaming", previous, delta))

    def _at_once(self) -> Iterator[Event]:
        reasoning, content = self.parser.extract_reasoning(self._text, self._asked)
        yield from _texts(reasoning, content)

    def _message(self, message: object) -> Iterator[Event]:
        reasoning = _field(message, "reasoning") or _field(message, "reasoning_content")
        yield from _texts(reasoning, _field(message, "content"))


class ToolSource(PluginSource):
    """A tool parser. A call's end is not said by vLLM's parsers: it is where another begins, or at the reply's."""

    _open: int | None = None
    _arguments = ""

    def _delta(self, previous: str, delta: str) -> Iterator[Event]:
        yield from self._message(self._called("extract_tool_calls_streaming", previous, delta, self._asked))

    def _at_once(self) -> Iterator[Event]:
        found = self.parser.extract_tool_calls(self._text, self._asked)
        yield from _texts(None, _field(found, "content"))
        calls = _field(found, "tool_calls")
        for index, call in enumerate(calls if isinstance(calls, Sequence) else ()):
            function = _field(call, "function")
            yield CallStart(index, str(_field(function, "name")), str(_field(call, "id") or ""))
            yield CallArguments(index, str(_field(function, "arguments")))
            yield CallEnd(index)

    def _rest(self) -> Iterator[Event]:
        yield from super()._rest()
        if self._open is not None and not _is_object(self._arguments):
            yield from self._argued(self._open, self.parser.get_remaining_unstreamed_args())
        yield from self._ended()

    def _message(self, message: object) -> Iterator[Event]:
        yield from _texts(None, _field(message, "content"))
        calls = _field(message, "tool_calls")
        for call in calls if isinstance(calls, Sequence) else ():
            index, function = _field(call, "index"), _field(call, "function")
            name = _field(function, "name")
            if not isinstance(index, int):
                continue
            if name and index != self._open:
                yield from self._ended()
                self._open, self._arguments = index, ""
                yield CallStart(index, str(name), str(_field(call, "id") or ""))
            if index == self._open:
                yield from self._argued(index, str(_field(function, "arguments") or ""))

    def _argued(self, index: int, json: str) -> Iterator[Event]:
        if json:
            self._arguments += json
            yield CallArguments(index, json)

    def _ended(self) -> Iterator[Event]:
        if self._open is not None and _is_object(self._arguments):
            yield CallEnd(self._open)
        self._open = None


def asked(request: Request) -> ChatCompletionRequest:
    """`request` as vLLM's parsers get it."""
    tools = [
        ChatCompletionToolsParam(type="function", function=FunctionDefinition(name=name, parameters=dict(schema)))
        for name, schema in request.tools.items()
    ]
    return ChatCompletionRequest(
        tools=tools or None,
        tool_choice="auto" if request.parse_calls else "none",
        parallel_tool_calls=request.parallel_tool_calls,
        include_reasoning=request.include_reasoning,
        chat_template_kwargs=dict(request.chat_template_kwargs),
    )


def _instance(parser: type, tokenizer: NoTokenizer, request: ChatCompletionRequest) -> VllmParser:
    """A new parser, with what its constructor takes of what vLLM would give it."""
    options = {"tools": vars(request)["tools"], "chat_template_kwargs": vars(request)["chat_template_kwargs"]}
    known = inspect.signature(parser).parameters
    takes_all = any(one.kind is one.VAR_KEYWORD for one in known.values()) and "extract_tool_calls" not in dir(parser)
    made: VllmParser = parser(
        tokenizer, **{name: value for name, value in options.items() if takes_all or name in known}
    )
    return made


def _texts(reasoning: object, content: object) -> Iterator[Event]:
    if isinstance(reasoning, str) and reasoning:
        yield Reasoning(reasoning)
    if isinstance(content, str) and content:
        yield Content(content)


def _field(thing: object, name: str) -> object:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
