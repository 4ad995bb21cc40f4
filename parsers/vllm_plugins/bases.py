"""Stand-ins for the classes that vLLM's parsers derive from, with vLLM's signatures (0.33)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, NoReturn, TypeVar

from streamsieve.parsers.events import Content, Event, Reasoning
from streamsieve.parsers.format import Format
from streamsieve.parsers.machine import Machine
from streamsieve.parsers.reading import read
from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.parsers.request import Request
from streamsieve.parsers.vllm_plugins.messages import DeltaMessage
from streamsieve.parsers.vllm_plugins.text_only import NoTokenizer

P = TypeVar("P", bound=type)


class ReasoningParser:
    """Splits thinking from answer; one instance reads one reply."""

    engine_based_streaming: ClassVar[bool] = False

    def __init__(self, tokenizer: NoTokenizer, *args: object, **kwargs: object) -> None:
        self.model_tokenizer = tokenizer

    @property
    def vocab(self) -> NoReturn:
        """The tokenizer's, which there is none of."""
        self.model_tokenizer.refuse("the vocabulary")

    @property
    def reasoning_start_str(self) -> str | None:
        """The opener of thinking."""
        return None

    @property
    def reasoning_end_str(self) -> str | None:
        """Its closer."""
        return None

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Asked of ids only."""
        raise NotImplementedError

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Asked of ids only."""
        return self.is_reasoning_end(input_ids)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Asked of ids only."""
        raise NotImplementedError

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Asked of ids only."""
        return 0

    def extract_reasoning(self, model_output: str, request: object) -> tuple[str | None, str | None]:
        """Thinking and content of a whole reply; called `extract_reasoning_content` before vLLM 0.12."""
        return self._older("extract_reasoning_content")(model_output, request)  # type: ignore[return-value]  # the plugin's own

    def extract_reasoning_streaming(
        self, previous_text: str, current_text: str, delta_text: str, *ids: Sequence[int]
    ) -> object | None:
        """What a delta adds; called `extract_reasoning_content_streaming` before vLLM 0.12."""
        older = self._older("extract_reasoning_content_streaming")
        return older(previous_text, current_text, delta_text, *ids)

    def adjust_request(self, request: object) -> object:
        """Nothing of the request is changed."""
        return request

    def prepare_structured_tag(self, original_tag: str | None, tool_server: object, **more: object) -> str | None:
        """The tag as it is."""
        return original_tag

    def _older(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] | None = getattr(self, name, None)
        if method is None:
            raise NotImplementedError(f"{type(self).__name__} has no method that reads text")
        return method


class BaseThinkingReasoningParser(ReasoningParser):
    """Thinking between two tokens; by their text here, where vLLM goes by their ids. The opener is optional."""

    start_token: str = ""
    end_token: str = ""

    def __init__(self, tokenizer: NoTokenizer, *args: object, **kwargs: object) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._machine: Machine | None = None

    @property
    def start_token_id(self) -> NoReturn:
        """Not known."""
        self.model_tokenizer.refuse("the id of its start token")

    @property
    def end_token_id(self) -> NoReturn:
        """Not known."""
        self.model_tokenizer.refuse("the id of its end token")

    @property
    def reasoning_start_str(self) -> str | None:
        """The opener of thinking."""
        return self.start_token

    @property
    def reasoning_end_str(self) -> str | None:
        """Its closer."""
        return self.end_token

    def extract_reasoning(self, model_output: str, request: object) -> tuple[str | None, str | None]:
        """Thinking and content of a whole reply."""
        message = read(self._format(), [model_output], Request())
        return message.reasoning, message.content

    def extract_reasoning_streaming(
        self, previous_text: str, current_text: str, delta_text: str, *ids: Sequence[int]
    ) -> DeltaMessage | None:
        """What a delta adds."""
        self._machine = self._machine or self._format().machine(Request())
        return _message(self._machine.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """What was held back."""
        return _message(self._machine.finish("stop")) if self._machine else None

    def _format(self) -> Format:
        return Format(name=type(self).__name__, reasoning=ReasoningSpan(pairs=((self.start_token, self.end_token),)))


class DeepSeekR1ReasoningParser(BaseThinkingReasoningParser):
    """Think tags."""

    start_token = "<think>"
    end_token = "</think>"


class IdentityReasoningParser(ReasoningParser):
    """All is content."""

    def extract_reasoning(self, model_output: str, request: object) -> tuple[str | None, str | None]:
        """No thinking."""
        return None, model_output

    def extract_reasoning_streaming(
        self, previous_text: str, current_text: str, delta_text: str, *ids: Sequence[int]
    ) -> DeltaMessage | None:
        """The delta as it is."""
        return DeltaMessage(content=delta_text) if delta_text else None


class ToolParser:
    """Reads calls; one instance reads one reply."""

    supports_required_and_named: ClassVar[bool] = True
    structural_tag_model: ClassVar[str | None] = None
    engine_based_streaming: ClassVar[bool] = False

    def __init__(self, tokenizer: NoTokenizer, tools: Sequence[object] | None = None) -> None:
        self.prev_tool_call_arr: list[dict[str, object]] = []
        self.current_tool_id = -1
        self.current_tool_name_sent = False
        self.streamed_args_for_tool: list[str] = []
        self.model_tokenizer = tokenizer
        self.tools = list(tools or ())

    @property
    def vocab(self) -> NoReturn:
        """The tokenizer's, which there is none of."""
        self.model_tokenizer.refuse("the vocabulary")

    def adjust_request(self, request: object) -> object:
        """Nothing of the request is changed."""
        return request

    def get_remaining_unstreamed_args(self) -> str:
        """Arguments of the last call that were read and not sent."""
        if not self.prev_tool_call_arr:
            return ""
        place, read = len(self.prev_tool_call_arr) - 1, self.prev_tool_call_arr[-1].get("arguments", {})
        text = read if isinstance(read, str) else json.dumps(read, ensure_ascii=False)
        sent = self.streamed_args_for_tool[place] if place < len(self.streamed_args_for_tool) else ""
        return text.removeprefix(sent) if text.startswith(sent) else ""

    def extract_tool_calls(self, model_output: str, request: object) -> object:
        """The calls of a whole reply."""
        raise NotImplementedError

    def extract_tool_calls_streaming(self, *texts_ids_and_request: object) -> object:
        """What a delta adds."""
        raise NotImplementedError


class Registry:
    """What vLLM calls a parser manager: classes by the names they were registered under."""

    parsers: ClassVar[dict[str, type]]
    base: ClassVar[type]

    @classmethod
    def register_module(
        cls, name: str | list[str] | None = None, force: bool = True, module: P | None = None
    ) -> P | Callable[[P], P]:
        """Register `module`; without one, what this decorates."""

        def register(parser: P) -> P:
            if not issubclass(parser, cls.base):
                raise TypeError(f"{parser.__name__} is no {cls.base.__name__}")
            for one in [parser.__name__] if name is None else [name] if isinstance(name, str) else name:
                if not force and one in cls.parsers:
                    raise KeyError(f"{one} is registered already")
                cls.parsers[one] = parser
            return parser

        return register if module is None else register(module)

    @classmethod
    def list_registered(cls) -> list[str]:
        """The names there are."""
        return sorted(cls.parsers)


def registries() -> Mapping[str, type[Registry]]:
    """Two empty ones, by the names that vLLM gives them."""
    return {
        f"{base.__name__}Manager": type(f"{base.__name__}Manager", (Registry,), {"parsers": {}, "base": base})
        for base in (ReasoningParser, ToolParser)
    }


def _message(events: Iterable[Event]) -> DeltaMessage | None:
    found = list(events)
    reasoning = "".join(event.text for event in found if isinstance(event, Reasoning))
    content = "".join(event.text for event in found if isinstance(event, Content))
    return DeltaMessage(reasoning=reasoning or None, content=content or None) if found else None
