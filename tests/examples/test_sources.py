"""The examples that serve an engine of this process, over stand-ins with the parts of its interface that they use."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from openai import OpenAI
from starlette.types import ASGIApp

from streamsieve.backends.loopback import loopback

EXAMPLES = Path(__file__).parents[2] / "examples"
CALL = ("<tool_call>", '{"name": "get_tide", "arguments": {"port"', ': "Brest"}}', "</tool_call>")
TOKENS = ("Tide", "s.", "</think>", "One ", "é", *CALL)
PROMPT = "<|im_start|>user\nTides?<|im_end|>\n<|im_start|>assistant\n<think>\n"
ASK: Any = {
    "model": "any",
    "messages": [{"role": "user", "content": "Tides?"}],
    "tools": [{"type": "function", "function": {"name": "get_tide", "parameters": {}}}],
    "max_tokens": 50,
    "temperature": 0.5,
}
Given = dict[str, Any]


class Template:
    """The tokenizer of transformers, as far as vLLM and mlx-lm hand it out."""

    def __init__(self, given: Given) -> None:
        self._given = given

    def apply_chat_template(
        self, messages: Any, *, tools: Any, add_generation_prompt: bool, tokenize: bool = True
    ) -> Any:
        assert add_generation_prompt
        self._given["messages"], self._given["tools"] = messages, tools
        return list(range(7)) if tokenize else PROMPT

    def decode(self, tokens: Sequence[int]) -> str:
        return PROMPT


def vllm(given: Given) -> dict[str, ModuleType]:
    class Engine:
        @classmethod
        def from_engine_args(cls, arguments: SimpleNamespace) -> Engine:
            given["model"] = arguments.model
            return cls()

        async def get_tokenizer(self) -> Template:
            return Template(given)

        async def generate(self, prompt: str, sampling: SimpleNamespace, request_id: str) -> AsyncIterator[Any]:
            assert prompt == PROMPT
            assert sampling.output_kind == "delta"
            assert sampling.skip_special_tokens is False
            given["sampling"] = (sampling.temperature, sampling.max_tokens)
            for number, text in enumerate(TOKENS):
                finish = "stop" if number == len(TOKENS) - 1 else None
                part = SimpleNamespace(text=text, token_ids=[number], finish_reason=finish)
                yield SimpleNamespace(outputs=[part], prompt_token_ids=range(7))

    return modules(
        {
            "vllm": {"SamplingParams": SimpleNamespace},
            "vllm.engine.arg_utils": {"AsyncEngineArgs": SimpleNamespace},
            "vllm.sampling_params": {"RequestOutputKind": SimpleNamespace(DELTA="delta")},
            "vllm.v1.engine.async_llm": {"AsyncLLM": Engine},
        }
    )


def llama_cpp(given: Given) -> dict[str, ModuleType]:
    # The é comes in two tokens, as it does from byte-level vocabularies.
    pieces = [part for text in TOKENS for part in ([b"\xc3", b"\xa9"] if text == "é" else [text.encode()])]
    eos, bos = len(pieces), len(pieces) + 1

    class Llama:
        def __init__(self, path: str, n_ctx: int, verbose: bool) -> None:
            given["model"] = path
            self.metadata = {"tokenizer.chat_template": "the template"}

        def token_eos(self) -> int:
            return eos

        def token_bos(self) -> int:
            return bos

        def detokenize(self, tokens: Sequence[int], special: bool) -> bytes:
            assert special
            return b"".join([*pieces, b"<|im_end|>", b"<s>"][token] for token in tokens)

        def tokenize(self, text: bytes, add_bos: bool, special: bool) -> list[int]:
            assert (text, add_bos, special) == (PROMPT.encode(), False, True)
            return list(range(7))

        def generate(self, tokens: Sequence[int], temp: float) -> Iterator[int]:
            given["sampling"] = (temp, 50)
            given["threads"].add(threading.get_ident())
            yield from range(eos + 1)
            raise AssertionError("asked for more behind the end")

    class Formatter:
        def __init__(self, template: str, eos_token: str, bos_token: str) -> None:
            assert (template, eos_token, bos_token) == ("the template", "<|im_end|>", "<s>")

        def __call__(self, *, messages: Any, tools: Any) -> SimpleNamespace:
            given["messages"], given["tools"] = messages, tools
            return SimpleNamespace(prompt=PROMPT)

    return modules({"llama_cpp": {"Llama": Llama}, "llama_cpp.llama_chat_format": {"Jinja2ChatFormatter": Formatter}})


def mlx_lm(given: Given) -> dict[str, ModuleType]:
    def load(name: str) -> tuple[object, Template]:
        given["model"] = name
        return object(), Template(given)

    def stream_generate(
        model: object, tokenizer: Template, prompt: Sequence[int], *, max_tokens: int, sampler: float
    ) -> Any:
        given["sampling"] = (sampler, max_tokens)
        given["threads"].add(threading.get_ident())
        for number, text in enumerate(TOKENS, 1):
            finish = "stop" if number == len(TOKENS) else None
            yield SimpleNamespace(text=text, finish_reason=finish, prompt_tokens=len(prompt), generation_tokens=number)

    return modules(
        {
            "mlx_lm": {"load": load, "stream_generate": stream_generate},
            "mlx_lm.sample_utils": {"make_sampler": lambda temp: temp},
        }
    )


def modules(contents: dict[str, dict[str, Any]]) -> dict[str, ModuleType]:
    """Modules with these names in them, and the packages that they are in."""
    made: dict[str, ModuleType] = {}
    for name in contents:
        parts = name.split(".")
        for size in range(1, len(parts) + 1):
            made.setdefault(".".join(parts[:size]), ModuleType(".".join(parts[:size])))
        vars(made[name]).update(contents[name])
    return made


@pytest.mark.parametrize(
    ("example", "stand_in", "completion"),
    [("source_vllm", vllm, 9), ("source_llama_cpp", llama_cpp, 10), ("source_mlx", mlx_lm, 9)],
)
def test_an_engine_of_this_process(
    example: str, stand_in: Any, completion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Given = {"threads": set()}
    for name, module in stand_in(given).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("MODEL", "the/model")
    app = loaded(example)
    assert given["model"] == "the/model"
    with loopback(app) as url, OpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
        whole: Any = client.chat.completions.create(**ASK)
        with client.chat.completions.stream(**ASK) as events:
            streamed: Any = events.get_final_completion().choices[0]
    for message in (whole.choices[0].message, streamed.message):
        assert (message.reasoning, message.content) == ("Tides.", "One é")
        assert [call.function.arguments for call in message.tool_calls] == ['{"port": "Brest"}']
    assert whole.choices[0].finish_reason == "tool_calls"
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (7, completion)
    assert (given["messages"], given["tools"]) == (ASK["messages"], ASK["tools"])
    assert given["sampling"] == (0.5, 50)
    assert len(given["threads"]) <= 1


def loaded(example: str) -> ASGIApp:
    spec = importlib.util.spec_from_file_location(example, EXAMPLES / f"{example}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: ASGIApp = module.app()
    return made
