"""The methods of a tool parser of vLLM's, on one of our formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from streamsieve.parsers.events import CallArguments, CallStart, Content, Event, Reasoning
from streamsieve.parsers.format import Format, combine
from streamsieve.parsers.machine import Machine
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.vllm.interface import Interface, Tokenizer
from streamsieve.parsers.vllm.requests import read_request


class ToolMethods:
    """Stands before vLLM's `ToolParser` among the bases of a class; one instance reads one reply.

    vLLM says nothing of how a reply ended, so a call that was cut off counts as broken: read whole it is
    text again, streamed it stays as far as it came (contract, rules 7 and 8). `tool_choice` "required" or
    one function is vLLM's own business: it makes the model write plain JSON, and reads that itself.
    """

    format: ClassVar[Format]
    vllm: ClassVar[Interface]
    engine_based_streaming: ClassVar[bool] = True
    skip_reasoning_parsing = False
    """Set by vLLM where no reasoning parser is chosen: think markers are text then (contract, rule 5)."""

    def __init__(self, tokenizer: Tokenizer, tools: object = None, *args: object, **kwargs: object) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)  # type: ignore[call-arg]  # vLLM's class stands behind this
        self.vllm.tools_in_use[:] = [self.format]
        self._machine: Machine | None = None
        self.prev_tool_call_arr: list[dict[str, str]]
        self.streamed_args_for_tool: list[str]

    def extract_tool_calls(self, model_output: str, request: object) -> object:
        """The calls of a whole reply, without its thinking, and its content."""
        message = read(self._answer(), [model_output], self._asked(request), whole=True)
        calls = [
            self.vllm.tool_call(
                id=call.id,
                type="function",
                function=self.vllm.function_call(name=call.name, arguments=call.arguments),
            )
            for call in message.tool_calls
        ]
        return self.vllm.extracted_tool_calls(tools_called=bool(calls), tool_calls=calls, content=message.content)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: object,
    ) -> object | None:
        """What `delta_text` adds, in one message; None where that is nothing yet."""
        if self._machine is None:
            self._machine = self._answer().machine(self._asked(request))
        return self._delta(self._machine.feed(delta_text))

    def finish_streaming(self) -> object | None:
        """What was held back, when the reply is over."""
        machine, self._machine = self._machine, None
        return self._delta(machine.finish("stop")) if machine else None

    def adjust_request(self, request: object) -> object:
        """As vLLM does it; and where calls may come, have the detokenizer keep special tokens."""
        request = super().adjust_request(request)  # type: ignore[misc]  # vLLM's class stands behind this
        if getattr(request, "tools", None) and getattr(request, "tool_choice", None) != "none":
            request.skip_special_tokens = False  # type: ignore[attr-defined]  # one of vLLM's request models
        return request

    def _answer(self) -> Format:
        """What reads an answer: with the format's other half it knows tags that may stand in one."""
        mine = self.format
        span = mine.reasoning
        whole = mine.messages or (span and span.starts != "restored" and not self.skip_reasoning_parsing)
        return mine if whole else combine(None, mine)

    def _asked(self, request: object) -> Request:
        """`request`, to be answered in a turn whose thinking has been read."""
        asked, span = read_request(request), self.format.reasoning
        return replace(asked, prompt_tail=span.of(asked).pairs[0][1] if span else None)

    def _delta(self, events: Iterable[Event]) -> object | None:
        reasoning, content = "", ""
        calls: dict[int, _CallDelta] = {}
        for event in events:
            match event:
                case Reasoning(text):
                    reasoning += text
                case Content(text):
                    content += text
                case CallStart(index):
                    calls[index] = _CallDelta(event)
                case CallArguments(index, json):
                    calls.setdefault(index, _CallDelta()).arguments += json
        if not reasoning and not content and not calls:
            return None
        deltas = [self._call_delta(index, delta) for index, delta in calls.items()]
        return self.vllm.delta_message(reasoning=reasoning or None, content=content or None, tool_calls=deltas)

    def _call_delta(self, index: int, delta: _CallDelta) -> object:
        make, function = self.vllm.delta_tool_call, self.vllm.delta_function_call
        if delta.start is None:
            return make(index=index, function=function(arguments=delta.arguments))
        # vLLM counts the calls here, and looks for arguments that are not sent yet: there are none.
        self.prev_tool_call_arr.append({"name": delta.start.name, "arguments": ""})
        self.streamed_args_for_tool.append("")
        named = function(name=delta.start.name, arguments=delta.arguments)
        return make(index=index, id=delta.start.id, type="function", function=named)


@dataclass(slots=True)
class _CallDelta:
    """What one delta adds to one call."""

    start: CallStart | None = None
    arguments: str = ""
