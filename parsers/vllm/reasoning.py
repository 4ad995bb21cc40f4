"""The methods of a reasoning parser of vLLM's, on one of our formats."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import ClassVar

from streamsieve.parsers.format import Format, combine
from streamsieve.parsers.reasoning import Opening, ReasoningSpan
from streamsieve.parsers.request import Request
from streamsieve.parsers.vllm.interface import Interface, Tokenizer
from streamsieve.parsers.vllm.requests import read_request
from streamsieve.parsers.vllm.thinking import Thinking, without_calls

_PROMPT_IDS = 4096
"""Ids of a prompt's end that are looked at; think markers further back are not seen."""


class ReasoningMethods:
    """Stands before vLLM's `ReasoningParser` among the bases of a class; one instance reads one reply.

    `engine_based_streaming`: vLLM hands over deltas alone, asks the parser itself whether the thinking
    has ended, and takes what it holds at the end. Ids are looked at where vLLM has nothing but ids, and
    there as text: a marker that is only typed counts too.
    """

    format: ClassVar[Format]
    vllm: ClassVar[Interface]
    engine_based_streaming: ClassVar[bool] = True

    def __init__(self, tokenizer: Tokenizer, *args: object, **kwargs: object) -> None:
        super().__init__(tokenizer, *args, **kwargs)  # type: ignore[call-arg]  # vLLM's class stands behind this
        self._tokenizer = tokenizer
        template = kwargs.get("chat_template_kwargs")
        self._request = Request(chat_template_kwargs=template if isinstance(template, Mapping) else {})
        self._thinking: Thinking | None = None

    # -- text --

    def extract_reasoning(self, model_output: str, request: object) -> tuple[str | None, str | None]:
        """Thinking and the rest of a whole reply; calls stay in the rest, as the model wrote them."""
        asked = read_request(request)
        kwargs = asked.chat_template_kwargs or self._request.chat_template_kwargs
        asked = replace(asked, chat_template_kwargs=kwargs, prompt_tail=self._request.prompt_tail)
        thinking = Thinking(self._both(), asked)
        thought = thinking.feed(model_output)
        if thinking.rest is None:
            thought += thinking.finish()
        if thinking.rest is not None and thinking.call_place is None:
            split = without_calls(self.format, model_output, asked)
            return split.reasoning, split.content
        return thought or None, thinking.rest

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> object | None:
        """What `delta_text` adds; not called any more once the thinking has ended."""
        if self._thinking is None:
            self._thinking = Thinking(self._both(), self._request)
        return self._delta(self._thinking.feed(delta_text))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Whether the answer has begun, or a call."""
        return self._thinking is not None and self._thinking.rest is not None

    def finish_streaming(self) -> object | None:
        """What was held back, when the reply is over; what is behind the thinking was never held."""
        thinking, self._thinking = self._thinking, None
        return None if thinking is None or thinking.rest is not None else self._delta(thinking.finish(), thinking)

    def _delta(self, thought: str, thinking: Thinking | None = None) -> object | None:
        thinking = thinking or self._thinking
        rest = thinking.rest if thinking else None
        return self.vllm.delta_message(reasoning=thought or None, content=rest or None) if thought or rest else None

    # -- the prompt, and the request --

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """The rendered prompt, which may end within thinking, or behind it."""
        self._request = replace(self._request, prompt_tail=self._text(prompt_token_ids[-_PROMPT_IDS:]))

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """The same, from where a stream starts."""
        self.set_prompt_token_ids(prompt_token_ids)

    def adjust_request(self, request: object) -> object:
        """Have the detokenizer keep special tokens, which are most formats' markers."""
        request.skip_special_tokens = False  # type: ignore[attr-defined]  # one of vLLM's request models
        return request

    def prepare_structured_tag(self, original_tag: str | None, tool_server: object, **more: object) -> str | None:
        """The tag as it is: our formats put nothing round it."""
        return original_tag

    # -- ids --

    @property
    def reasoning_start_str(self) -> str | None:
        """The opener that the format writes; None for message formats, which have headers."""
        span = self._span()
        return span.pairs[0][0] if span else None

    @property
    def reasoning_end_str(self) -> str | None:
        """The closer that goes with it."""
        span = self._span()
        return span.pairs[0][1] if span else None

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether a prompt that ends so, or a reply so far, has closed its thinking; no for message formats."""
        span = self._span()
        if span is None:
            return False
        tail = self._text(input_ids[-_PROMPT_IDS:])
        return span.opening(replace(self._request, prompt_tail=tail))[0] in (Opening.OFF, Opening.ANSWERED)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether thinking is closed within `delta_ids`, the last of `input_ids`, or there is none.

        A call that ends thinking by itself is not seen here, only by its text.
        """
        span, new = self._span(), len(list(delta_ids))
        if span is None or span.opening(self._request)[0] is Opening.OFF:
            return span is not None
        width = max(len(closer.encode()) for closer in span.closers)  # a token is a byte or more
        tail = list(input_ids)[-(new + width) :]
        text, before = self._text(tail), self._text(tail[: len(tail) - new])
        return any(text.count(closer) > before.count(closer) for closer in span.closers)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """The ids behind the thinking; none while it lasts."""
        return input_ids[self._thought(input_ids)[2] :]

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """How many ids of a reply are thinking, its markers not counted; 0 for message formats."""
        first, end, _ = self._thought(token_ids)
        return max(end - first, 0)

    def _thought(self, ids: Sequence[int]) -> tuple[int, int, int]:
        """The first id of the thinking, the one behind its last, and the first of the answer."""
        span = self._span()
        if span is None:
            return 0, 0, 0
        texts = [self._text([one]) for one in ids]
        ends = list(accumulate(map(len, texts)))
        first, end, behind = (bisect_right(ends, place) for place in self._places("".join(texts), span))
        return first, end, behind

    def _places(self, text: str, span: ReasoningSpan) -> tuple[int, int, int]:
        """The same in the text of a reply."""
        opening, _ = span.opening(self._request)
        opened = {text.find(opener) + len(opener) for opener in span.openers if text.lstrip().startswith(opener)}
        starts_open = opening in (Opening.REASONING, Opening.UNLESS_ANSWERED)
        if not starts_open and not (opened and opening is Opening.MARKED):
            return 0, 0, 0
        start = max(opened, default=0)
        thinking = Thinking(self._both(), self._request)
        thinking.feed(text)
        ends = [(text.find(closer, start), closer) for closer in span.closers if text.find(closer, start) >= 0]
        ends += [] if thinking.call_place is None else [(thinking.call_place, "")]
        place, closer = min(ends, default=(len(text), ""))
        return start, place, place + len(closer)

    def _both(self) -> Format:
        """The format with the calls of the tool parser that is in use, where that is one of ours."""
        tools = next((one for one in self.vllm.tools_in_use if not one.messages), None)
        return self.format if self.format.messages or tools is None else combine(self.format, tools)

    def _span(self) -> ReasoningSpan | None:
        return self.format.reasoning.of(self._request) if self.format.reasoning else None

    def _text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids)) if len(ids) else ""
