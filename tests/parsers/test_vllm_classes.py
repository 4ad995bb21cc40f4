"""Our formats as classes for vLLM: stand-ins for its base classes, and for the order in which it calls a parser.

The signatures are those of vLLM 0.33 (`vllm/reasoning/abs_reasoning_parsers.py`,
`vllm/tool_parsers/abstract_tool_parser.py`), the order is that of `vllm/parser/abstract_parser.py`.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers import vllm as ours
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.vllm import interface

# Stand-ins


class Message(SimpleNamespace):
    """One of vLLM's pydantic models."""


class DeltaMessage(Message):
    def __init__(self, *, reasoning: str | None = None, content: str | None = None, tool_calls: Any = ()) -> None:
        super().__init__(reasoning=reasoning, content=content, tool_calls=list(tool_calls))


class ReasoningParser:
    engine_based_streaming = False

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        self.model_tokenizer = tokenizer

    def has_engine_confirmed_reasoning_end(self) -> bool: ...
    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool: ...
    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool: ...
    def extract_content_ids(self, input_ids: list[int]) -> list[int]: ...
    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int: ...
    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]: ...

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None: ...

    def adjust_request(self, request: Any) -> Any: ...
    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None: ...
    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None: ...
    def prepare_structured_tag(self, original_tag: str | None, tool_server: Any) -> str | None: ...


class ToolParser:
    engine_based_streaming = False

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        self.prev_tool_call_arr: list[dict[str, str]] = []
        self.current_tool_id = -1
        self.streamed_args_for_tool: list[str] = []
        self.model_tokenizer = tokenizer

    def adjust_request(self, request: Any) -> Any:
        request.adjusted = True
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> Any: ...

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None: ...


def manager() -> Any:
    """One of vLLM's, with a parser of vLLM's own in it."""

    class Manager:
        parsers: dict[str, type] = {"hermes": object, "qwen3": object}  # noqa: RUF012  # as vLLM has it

        @classmethod
        def register_module(cls, name: str, force: bool = True, module: type | None = None) -> type | None:
            assert force
            assert module
            cls.parsers[name] = module
            return module

    return Manager


class Tokenizer:
    """One id a tag, else one a character; ids in the order in which texts are seen."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, text: str) -> list[int]:
        pieces = re.findall(r"<[^<>\s]+>|\[/?[A-Z_]+\]|.", text, re.DOTALL)
        self.texts += [piece for piece in dict.fromkeys(pieces) if piece not in self.texts]
        return [self.texts.index(piece) for piece in pieces]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return "".join(self.texts[one] for one in ids)


PROTOCOL = "vllm.entrypoints.generate.base.protocol"


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """vLLM, as far as a plugin sees it, with our parsers registered."""
    managers = {"ReasoningParserManager": manager(), "ToolParserManager": manager()}
    contents: dict[str, dict[str, Any]] = {
        "vllm.reasoning": {"ReasoningParser": ReasoningParser, **managers},
        "vllm.tool_parsers": managers,
        "vllm.tool_parsers.abstract_tool_parser": {"ToolParser": ToolParser},
        PROTOCOL: {
            "DeltaMessage": DeltaMessage,
            **dict.fromkeys(
                ("DeltaToolCall", "DeltaFunctionCall", "ExtractedToolCallInformation", "ToolCall", "FunctionCall"),
                Message,
            ),
        },
    }
    for path in (*contents, "vllm", *(PROTOCOL.rsplit(".", level)[0] for level in (1, 2, 3))):
        module = ModuleType(path)
        module.__path__ = []
        vars(module).update(contents.get(path, {}))
        monkeypatch.setitem(sys.modules, path, module)
    names = ours.register()
    parsers = {kind: managers[f"{kind}ParserManager"].parsers for kind in ("Reasoning", "Tool")}
    return SimpleNamespace(names=names, reasoning=parsers["Reasoning"], tools=parsers["Tool"])


class Serving:
    """What vLLM does with a pair of parsers and one reply, whole and streamed."""

    def __init__(self, vllm: SimpleNamespace, reasoning: str | None, tools: str | None, request: Any) -> None:
        self.tokenizer = Tokenizer()
        self.request = request
        self.prompt = self.tokenizer.encode(request.prompt)
        self.reasoning = vllm.reasoning[reasoning](self.tokenizer, chat_template_kwargs={}) if reasoning else None
        self.tools = vllm.tools[tools](self.tokenizer, request.tools) if tools else None
        if self.tools and not self.reasoning:
            self.tools.skip_reasoning_parsing = True

    def whole(self) -> Any:
        reasoning, content, calls = None, self.request.reply, []
        if self.reasoning:
            self.reasoning.set_prompt_token_ids(self.prompt)
            reasoning, content = self.reasoning.extract_reasoning(content, self.request)
        if self.tools:
            found = self.tools.extract_tool_calls(content or "", self.request)
            calls, content = [(call.function.name, call.function.arguments) for call in found.tool_calls], found.content
        return reasoning, content, calls

    def streamed(self, size: int) -> Any:
        self.in_reasoning = self.reasoning is not None
        if self.reasoning:
            self.reasoning.set_prompt_token_ids(self.prompt)
            self.in_reasoning = not self.reasoning.is_reasoning_end(self.prompt)
        reply, deltas = self.request.reply, []
        for at in range(0, len(reply), size):
            deltas += self._delta(reply[at : at + size])
        last = self.reasoning if self.in_reasoning else self.tools
        deltas.append(last.finish_streaming() if last else None)
        return gathered(filter(None, deltas))

    def _delta(self, text: str) -> Iterator[DeltaMessage | None]:
        if self.in_reasoning:
            delta = self.reasoning.extract_reasoning_streaming("", text, text, [], [], self.tokenizer.encode(text))
            self.in_reasoning = not self.reasoning.has_engine_confirmed_reasoning_end()
            if self.in_reasoning:
                yield delta
                return
            flushed = self.reasoning.finish_streaming()
            yield DeltaMessage(reasoning=delta.reasoning)
            text = (delta.content or "") + ((flushed.content if flushed else None) or "")
        ids = self.tokenizer.encode(text)
        yield (
            self.tools.extract_tool_calls_streaming("", text, text, [], ids, ids, self.request)
            if self.tools
            else DeltaMessage(content=text)
        )


def gathered(deltas: Iterable[DeltaMessage]) -> Any:
    texts, calls = {"reasoning": "", "content": ""}, {}
    for delta in deltas:
        for tray in texts:
            texts[tray] += getattr(delta, tray) or ""
        for call in delta.tool_calls:
            if vars(call).get("id"):
                assert call.type == "function"
                calls[call.index] = [call.function.name, ""]
            calls[call.index][1] += call.function.arguments
    return texts["reasoning"] or None, texts["content"] or None, [tuple(call) for call in calls.values()]


TOOLS = [
    Message(
        function=Message(name="get_tide", parameters={"type": "object", "properties": {"days": {"type": "integer"}}})
    )
]


def asked(reply: str, **more: Any) -> Any:
    request = {"prompt": "<|im_start|>assistant\n", "tools": TOOLS, "tool_choice": "auto", "parallel_tool_calls": True}
    return Message(**request | {"chat_template_kwargs": None, "messages": [], "reply": reply} | more)


HERMES = '<tool_call>\n{"name": "get_tide", "arguments": {"days": 1}}\n</tool_call>'
CODER = "<tool_call>\n<function=get_tide>\n<parameter=days>\n1\n</parameter>\n</function>\n</tool_call>"
CALL = ("get_tide", '{"days": 1}')


@pytest.mark.parametrize(
    ("reasoning", "tools", "reply", "expected"),
    [
        ("qwen3", "hermes", f"Hm.\n</think>\n\nLook:\n{HERMES}<|im_end|>", ("Hm.", "Look:", [CALL])),
        ("qwen3", "hermes", f"<think>Hm.</think>{HERMES}\n{HERMES}", ("Hm.", None, [CALL, CALL])),
        ("qwen3", "hermes", "Never ended, cut", ("Never ended, cut", None, [])),
        ("qwen3", "hermes", "a</think>b <tool_call>no call</tool_call>",
         ("a", "b <tool_call>no call</tool_call>", [])),
        ("qwen3", "qwen3_coder", f"A <tool_call> is due.\n{CODER}", ("A <tool_call> is due.", None, [CALL])),
        ("qwen3", "hermes", f"Straight on.\n{HERMES}", ("Straight on.", None, [CALL])),
        ("qwen3", "pythonic", "a</think>\n[get_tide(days=1)]", ("a", None, [CALL])),
        ("qwen3", None, "Hm.</think>\n\nDone <x", ("Hm.", "Done <x", [])),
        (None, "hermes", f"<think>a</think>{HERMES}", (None, "<think>a</think>", [CALL])),
        ("mistral", "mistral", '[THINK]a[/THINK]b[TOOL_CALLS]get_tide[ARGS]{"days": 1}', ("a", "b", [CALL])),
        ("mistral", "mistral", "No thinking.", (None, "No thinking.", [])),
        ("kimi_k2", "kimi_k2", "a<|tool_calls_section_begin|><|tool_call_begin|>functions.get_tide:0"
         '<|tool_call_argument_begin|>{"days": 1}<|tool_call_end|><|tool_calls_section_end|>', ("a", None, [CALL])),
        ("openai_gptoss", "openai", "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary"
         '<|message|>b<|end|><|start|>assistant<|channel|>commentary to=functions.get_tide <|constrain|>json<|message|>'
         '{"days": 1}<|call|>', ("a", "b", [CALL])),
        ("glm45", "glm45", "<think>a</think>b</think>c", ("a", "bc", [])),
    ],
)  # fmt: skip
def test_a_pair_reads_a_reply_alike_whole_and_streamed(
    vllm: SimpleNamespace, reasoning: str | None, tools: str | None, reply: str, expected: Any
) -> None:
    pair = reasoning and f"streamsieve_{reasoning}", tools and f"streamsieve_{tools}"
    assert Serving(vllm, *pair, asked(reply)).whole() == expected
    for size in (1, 2, 3, 7, 1000):
        assert Serving(vllm, *pair, asked(reply)).streamed(size) == expected, size


def test_a_call_that_was_cut_is_text_whole_and_as_far_as_it_came_streamed(vllm: SimpleNamespace) -> None:
    cut = HERMES[:48]
    assert Serving(vllm, None, "streamsieve_hermes", asked(cut)).whole() == (None, cut, [])
    streamed = Serving(vllm, None, "streamsieve_hermes", asked(cut)).streamed(3)
    assert streamed[0] is streamed[1] is None
    assert streamed[2] == [("get_tide", '{"')]


def test_every_name_is_registered_and_none_of_vllms_is_taken(vllm: SimpleNamespace) -> None:
    listing = registry.listing()
    for kind, found, base in (("tool", vllm.tools, ToolParser), ("reasoning", vllm.reasoning, ReasoningParser)):
        names = {f"streamsieve_{entry['name']}" for entry in listing[kind]} - {"streamsieve_hf"}  # type: ignore[literal-required]
        assert set(found) == {"hermes", "qwen3"} | names
        assert found["hermes"] is found["qwen3"] is object
        assert all(issubclass(found[name], base) for name in names)
    assert vllm.names == sorted({*vllm.tools, *vllm.reasoning} - {"hermes", "qwen3"})
    assert vllm.tools["streamsieve_granite-20b-fc"].__name__ == "StreamsieveGranite20BFcToolParser"


@pytest.mark.parametrize("base", [ReasoningParser, ToolParser])
def test_the_methods_take_what_vllm_gives_them(vllm: SimpleNamespace, base: type) -> None:
    parser = (vllm.tools if base is ToolParser else vllm.reasoning)["streamsieve_mistral"]
    assert parser.engine_based_streaming
    for name, method in vars(base).items():
        if inspect.isfunction(method) and name != "__init__":
            assert getattr(parser, name) is not method, name
            known = list(inspect.signature(getattr(parser, name)).parameters)
            theirs = list(inspect.signature(method).parameters)
            assert known[: len(theirs)] == theirs


# Ids


@pytest.mark.parametrize(
    ("name", "prompt", "ended"),
    [
        ("qwen3", "<|im_start|>user\nhi<|im_start|>assistant\n", False),
        ("qwen3", "<|im_start|>assistant\n<think>\n", False),
        ("qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", True),
        ("qwen3", "<|im_start|>assistant\n<think>a</think>b<|im_start|>assistant\n<think>", False),
        ("mistral", "[INST]hi[/INST]", False),
        ("deepseek_v3", "<|im_start|>assistant\n", True),
        ("openai_gptoss", "<|start|>assistant", False),
    ],
)
def test_has_thinking_ended_in_a_prompt(vllm: SimpleNamespace, name: str, prompt: str, ended: bool) -> None:
    tokenizer = Tokenizer()
    assert vllm.reasoning[f"streamsieve_{name}"](tokenizer).is_reasoning_end(tokenizer.encode(prompt)) == ended


@pytest.mark.parametrize(
    ("name", "before", "delta", "ended"),
    [
        ("qwen3", "a", "b", False),
        ("qwen3", "a", "</think>", True),
        ("qwen3", "a", "</think>b", True),
        ("qwen3", "a</think>", "b", False),
        ("qwen3", "a</thi", "nk>", True),
        ("deepseek_v3", "", "a", True),
        ("openai_gptoss", "<|channel|>analysis<|message|>a", "<|end|>", False),
    ],
)
def test_does_thinking_end_in_a_step(vllm: SimpleNamespace, name: str, before: str, delta: str, ended: bool) -> None:
    tokenizer = Tokenizer()
    parser = vllm.reasoning[f"streamsieve_{name}"](tokenizer)
    new = tokenizer.encode(delta)
    assert parser.is_reasoning_end_streaming(tokenizer.encode(before) + new, iter(new)) == ended


@pytest.mark.parametrize(
    ("name", "reply", "content", "count"),
    [
        ("qwen3", "abc</think>de", "de", 3),
        ("qwen3", "<think>abc</think>de", "de", 3),
        ("qwen3", "abc", "", 3),
        ("qwen3", f"abc</think>{CODER}", CODER, 3),
        ("qwen3", f"ab{CODER}", CODER, 2),
        ("qwen3", "</think>", "", 0),
        ("mistral", "[THINK]ab[/THINK]c", "c", 2),
        ("mistral", "abc", "abc", 0),
        ("deepseek_v3", "abc", "abc", 0),
        ("openai_gptoss", "<|channel|>analysis<|message|>a<|end|>", "<|channel|>analysis<|message|>a<|end|>", 0),
    ],
)
def test_the_ids_of_a_reply_are_told_apart(
    vllm: SimpleNamespace, name: str, reply: str, content: str, count: int
) -> None:
    tokenizer = Tokenizer()
    parser = vllm.reasoning[f"streamsieve_{name}"](tokenizer)
    ids = tokenizer.encode(reply)
    assert tokenizer.decode(parser.extract_content_ids(ids)) == content
    assert parser.count_reasoning_tokens(ids) == count


def test_thinking_is_switched_by_the_request(vllm: SimpleNamespace) -> None:
    parser = vllm.reasoning["streamsieve_qwen3"]
    off = parser(Tokenizer(), chat_template_kwargs={"enable_thinking": False}, model_config=object())
    assert off.is_reasoning_end([])
    assert off.extract_reasoning("a</think>b", asked("")) == (None, "a</think>b")
    by_request = asked("", chat_template_kwargs={"enable_thinking": False})
    assert parser(Tokenizer()).extract_reasoning("a</think>b", by_request) == (None, "a</think>b")


def test_the_markers_are_told(vllm: SimpleNamespace) -> None:
    for name, markers in (("qwen3", ("<think>", "</think>")), ("openai_gptoss", (None, None))):
        parser = vllm.reasoning[f"streamsieve_{name}"](Tokenizer())
        assert (parser.reasoning_start_str, parser.reasoning_end_str) == markers


def test_special_tokens_are_asked_for_where_they_are_needed(vllm: SimpleNamespace) -> None:
    tools, reasoning = vllm.tools["streamsieve_hermes"](Tokenizer()), vllm.reasoning["streamsieve_qwen3"](Tokenizer())
    request = tools.adjust_request(asked(""))
    assert request.adjusted
    assert request.skip_special_tokens is False
    for unasked in (asked("", tools=None), asked("", tool_choice="none")):
        assert "skip_special_tokens" not in vars(tools.adjust_request(unasked))
    assert reasoning.adjust_request(asked("", tools=None)).skip_special_tokens is False
    assert reasoning.prepare_structured_tag("tag", None) == "tag"
    assert reasoning.prepare_structured_tag(None, None, tools=[]) is None


@pytest.mark.parametrize(
    "tool",
    [
        {
            "type": "function",
            "function": {"name": "get_tide", "parameters": {"properties": {"days": {"type": "string"}}}},
        },
        Message(name="get_tide", parameters={"properties": {"days": {"type": "string"}}}),  # the Responses API
    ],
)
def test_tools_of_either_api_type_the_arguments(vllm: SimpleNamespace, tool: Any) -> None:
    parser = vllm.tools["streamsieve_qwen3_coder"](Tokenizer(), [tool])
    found = parser.extract_tool_calls(CODER, asked("", tools=[tool]))
    assert found.tools_called
    assert [call.function.arguments for call in found.tool_calls] == ['{"days": "1"}']
    assert not parser.extract_tool_calls(CODER, asked("", tools=[tool], tool_choice="none")).tools_called
    named = asked("", tools=[tool], tool_choice=Message(function=Message(name="get_tide")))
    assert parser.extract_tool_calls(CODER, named).tools_called


# Where vLLM is not as expected


def test_without_vllm_the_import_does_nothing() -> None:
    code = "import sys, streamsieve.parsers.vllm; print([name for name in sys.modules if name.startswith('vllm')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.stdout == "[]\n", done.stderr


def test_an_older_place_of_the_messages_is_found(vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("vllm.entrypoints.openai", "vllm.entrypoints.openai.engine"):
        module = ModuleType(path)
        module.__path__ = []
        monkeypatch.setitem(sys.modules, path, module)
    monkeypatch.setitem(sys.modules, "vllm.entrypoints.openai.engine.protocol", sys.modules[PROTOCOL])
    monkeypatch.delitem(sys.modules, PROTOCOL)
    assert interface.load().delta_message is DeltaMessage


def test_another_interface_is_told_as_such(vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["vllm.tool_parsers.abstract_tool_parser"], "ToolParser")
    with pytest.raises(ConfigurationError, match="this version has no plugin interface that streamsieve knows"):
        ours.register()
