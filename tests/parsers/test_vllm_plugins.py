"""Parser files written for vLLM, used without it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Message
from streamsieve.parsers.vllm_plugins import loading
from streamsieve.parsers.vllm_plugins import stand_ins as stand_ins_module
from streamsieve.parsers.vllm_plugins.stand_ins import stand_ins

REASONING = '''
import logging
from collections.abc import Sequence
from transformers import PreTrainedTokenizerBase

from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.logger import init_logger
from vllm.reasoning import ReasoningParser, ReasoningParserManager
from vllm.tokenizers import TokenizerLike

logger = init_logger(__name__)


@ReasoningParserManager.register_module(["plan", "planner"])
class PlanParser(ReasoningParser):
    """Thinking ends at the word END."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *args, **kwargs):
        super().__init__(tokenizer, *args, **kwargs)
        self.thinking = (kwargs.get("chat_template_kwargs") or {}).get("plan", True)
        self.held = ""

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return self.vocab["END"] in input_ids

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        return input_ids

    def extract_reasoning(self, model_output: str, request: ChatCompletionRequest):
        if not self.thinking:
            return None, model_output
        reasoning, end, content = model_output.partition("END")
        return reasoning, content if end else None

    def extract_reasoning_streaming(self, previous_text, current_text, delta_text, *ids):
        if not self.thinking or "END" in previous_text:
            return DeltaMessage(content=delta_text)
        text, self.held = self.held + delta_text, ""
        if "END" in text:
            reasoning, _, content = text.partition("END")
            return DeltaMessage(reasoning=reasoning, content=content or None)
        self.held = next(("END"[:size] for size in (2, 1) if text.endswith("END"[:size])), "")
        text = text.removesuffix(self.held)
        return DeltaMessage(reasoning=text) if text else None
'''
TOOLS = '''
import json
from vllm.entrypoints.openai.protocol import (
    ChatCompletionRequest, DeltaFunctionCall, DeltaMessage, DeltaToolCall,
    ExtractedToolCallInformation, FunctionCall, ToolCall,
)
from vllm.entrypoints.openai.tool_parsers.abstract_tool_parser import ToolParser, ToolParserManager
from vllm.utils import random_uuid


@ToolParserManager.register_module("lines")
class LineParser(ToolParser):
    """A line `name: value` calls."""

    def __init__(self, tokenizer):
        super().__init__(tokenizer)
        if not self.model_tokenizer:
            raise ValueError("no tokenizer")

    def extract_tool_calls(self, model_output, request: ChatCompletionRequest):
        known = [tool.function.name for tool in request.tools]
        calls, rest = [], []
        for line in model_output.splitlines(keepends=True):
            name, _, value = line.strip().partition(": ")
            if name in known:
                arguments = json.dumps({"value": value})
                calls.append(ToolCall(id="lines-" + value, function=FunctionCall(name=name, arguments=arguments)))
            else:
                rest.append(line)
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content="".join(rest))

    def extract_tool_calls_streaming(
        self, previous_text, current_text, delta_text, previous_token_ids, current_token_ids, delta_token_ids, request
    ):
        done = current_text[previous_text.rfind("\\n") + 1 : current_text.rfind("\\n") + 1]
        found = self.extract_tool_calls(done, request)
        calls = []
        for call in found.tool_calls:
            self.current_tool_id += 1
            begun = DeltaFunctionCall(name=call.function.name).model_dump(exclude_none=True)
            more = DeltaFunctionCall(arguments=call.function.arguments)
            calls.append(DeltaToolCall(index=self.current_tool_id, type="function", id=call.id, function=begun))
            calls.append(DeltaToolCall(index=self.current_tool_id, function=more))
        return DeltaMessage(content=found.content, tool_calls=calls) if done else None
'''
REQUEST = Request.from_body({"tools": [{"function": {"name": "ping"}}, {"function": {"name": "save"}}]})
Load = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Writes a plugin file and loads it; its names are gone afterwards, and what it brought into `sys.modules`."""
    before = dict(registry._ADDED)
    # As where neither vLLM nor transformers is installed, the case that the stand-ins are for.
    monkeypatch.setattr(stand_ins_module, "find_spec", lambda name: None if name == "transformers" else find_spec(name))
    monkeypatch.delitem(sys.modules, "transformers", raising=False)
    modules = set(sys.modules)

    def put(source: str, name: str = "my_vllm_parser", option: str = "tool_parser_plugin") -> list[str]:
        file = tmp_path / f"{name}.py"
        file.write_text(source)
        return list(loading.load(str(file), option))

    yield put
    registry._ADDED.clear()
    registry._ADDED.update(before)
    registry.reload()
    for module in set(sys.modules) - modules:
        if not module.startswith("streamsieve"):
            del sys.modules[module]


def chosen(tool_parser: str | None = None, reasoning_parser: str | None = None) -> Format:
    found = registry.select(tool_parser=tool_parser, reasoning_parser=reasoning_parser)
    assert found is not None
    return found


def trays(message: Message) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    return message.reasoning, message.content, [(call.name, call.arguments) for call in message.tool_calls]


def test_the_names_of_a_file_choose_its_parsers(load: Load) -> None:
    assert load(REASONING) == ["plan", "planner"]
    assert load(TOOLS, "tools") == ["lines"]
    listing = registry.listing()
    entry = next(entry for entry in listing["reasoning"] if entry["name"] == "plan")
    assert (entry["aliases"], entry["format"], "error" in entry) == (["planner"], "plan", False)
    assert chosen(reasoning_parser="planner") == chosen(reasoning_parser="plan")
    assert chosen("lines", "plan").name == "plan+lines"
    with pytest.raises(ConfigurationError, match="tool_parser: unknown name 'plan'"):
        chosen("plan")


REPLY = "Think it overEND Look:\nping: 1\nsave: a b\n"
CALLS = [("ping", '{"value": "1"}'), ("save", '{"value": "a b"}')]
PAIRS = [
    ("plan", "lines", REPLY, ("Think it over", "Look:", CALLS)),
    ("plan", None, REPLY, ("Think it over", "Look:\nping: 1\nsave: a b\n", [])),
    (None, "lines", REPLY, (None, "Think it overEND Look:", CALLS)),
    ("plan", "hermes", 'aENDb<tool_call>{"name": "ping"}</tool_call>', ("a", "b", [("ping", "{}")])),
    ("qwen3", "lines", "a\n</think>\n\nb\nping: 1\n", ("a", "b", CALLS[:1])),
]


@pytest.mark.parametrize(("reasoning", "tools", "reply", "expected"), PAIRS)
def test_a_reply_is_read_whole_and_streamed(
    load: Load, reasoning: str | None, tools: str | None, reply: str, expected: object
) -> None:
    """Also where the other half is read by one of our formats, whichever half that is."""
    load(REASONING), load(TOOLS, "tools")
    format = chosen(tools, reasoning)
    assert trays(read(format, [reply], REQUEST, whole=True)) == expected
    for pieces in ([reply], list(reply), re.findall(r".{1,4}", reply, re.DOTALL)):
        assert trays(read(format, pieces, REQUEST)) == expected
        assert trays(read(format, pieces, REQUEST, deliver="complete")) == expected


def test_the_request_counts(load: Load) -> None:
    load(REASONING), load(TOOLS, "tools")
    format = chosen("lines", "plan")
    reply = "aENDping: 1\nsave: 2\n"
    no_calls = Request.from_body({"tools": [{"function": {"name": "ping"}}], "tool_choice": "none"})
    assert trays(read(format, [reply], no_calls, whole=True)) == ("a", "ping: 1\nsave: 2\n", [])
    one = Request.from_body(
        {"tools": [{"function": {"name": "ping"}}, {"function": {"name": "save"}}], "parallel_tool_calls": False}
    )
    for whole in (True, False):
        assert trays(read(format, [reply], one, whole=whole))[2] == [("ping", '{"value": "1"}')]
    off = Request.from_body({"chat_template_kwargs": {"plan": False}})
    for whole in (True, False):
        assert trays(read(format, ["aENDb"], off, whole=whole)) == (None, "aENDb", [])


def test_ids_are_the_parsers_own_and_made_where_it_has_none(load: Load) -> None:
    load(TOOLS)
    ids = [call.id for call in read(chosen("lines"), ["ping: 1\nping: 1\n"], REQUEST, whole=True).tool_calls]
    assert ids[0] == "lines-1" != ids[1]
    load(TOOLS.replace('id="lines-" + value, ', ""))
    [call] = read(chosen("lines"), ["ping: 1\n"], REQUEST, whole=True).tool_calls
    assert call.id.startswith("chatcmpl-tool-")


def test_a_file_of_both_kinds_is_loaded_once(load: Load) -> None:
    assert load(REASONING + TOOLS) == ["plan", "planner", "lines"]
    assert trays(read(chosen("lines", "plan"), [REPLY], REQUEST, whole=True)) == PAIRS[0][3]


def test_a_module_is_found_by_its_name(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "their_parsers"
    package.mkdir()
    (package / "__init__.py").write_text("from their_parsers import lines\n")
    (package / "lines.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(2):
        assert loading.load("their_parsers", "tool_parser_plugin") == ["lines"]
    with pytest.raises(ConfigurationError, match="json registers no parser"):
        loading.load("json", "tool_parser_plugin")
    assert sys.modules["json"] is json


@pytest.mark.parametrize("bases", ["vllm.reasoning.deepseek_r1_reasoning_parser", "vllm.reasoning.basic_parsers"])
def test_a_parser_between_two_tokens_goes_by_their_text(load: Load, bases: str) -> None:
    """The most frequent base class of plugin files, with methods of its own round those of the base."""
    name = "DeepSeekR1ReasoningParser" if "r1" in bases else "BaseThinkingReasoningParser"
    tokens = (
        ""
        if "r1" in bases
        else """
    @property
    def start_token(self):
        return "<think>"

    @property
    def end_token(self):
        return "</think>"
"""
    )
    load(f'''
from vllm.reasoning.abs_reasoning_parsers import ReasoningParserManager
from {bases} import {name}


@ReasoningParserManager.register_module("nano")
class Nano({name}):{tokens}
    def extract_reasoning(self, model_output, request):
        reasoning, content = super().extract_reasoning(model_output, request)
        kwargs = request.chat_template_kwargs
        if kwargs and kwargs.get("enable_thinking") is False and not content:
            reasoning, content = content, reasoning
        return reasoning, content

    def extract_reasoning_streaming(self, previous_text, current_text, delta_text, *ids):
        delta = super().extract_reasoning_streaming(previous_text, current_text, delta_text, *ids)
        if delta is not None and delta.reasoning:
            delta.reasoning = delta.reasoning.replace("x", "y")
        return delta
''')  # fmt: skip
    format = chosen(reasoning_parser="nano")
    for reply in ("<think>a x</think>b", "a x</think>b"):
        assert trays(read(format, [reply], REQUEST, whole=True)) == ("a x", "b", [])
        assert trays(read(format, list(reply), REQUEST)) == ("a y", "b", [])
    off = Request.from_body({"chat_template_kwargs": {"enable_thinking": False}})
    assert trays(read(format, ["b"], off, whole=True)) == (None, "b", [])


def test_method_names_of_before_vllm_0_12_are_found(load: Load) -> None:
    old = REASONING.replace("def extract_reasoning", "def extract_reasoning_content").replace(
        "extract_reasoning_content_streaming", "extract_reasoning_content_streaming"
    ).replace("DeltaMessage(reasoning=", "DeltaMessage(reasoning_content=")  # fmt: skip
    load(old)
    for whole in (True, False):
        assert trays(read(chosen(reasoning_parser="plan"), ["aENDb"], REQUEST, whole=whole)) == ("a", "b", [])


LAZY = """
from vllm.tool_parsers import ToolParser, ToolParserManager
@ToolParserManager.register_module("mine")
class Mine(ToolParser):
    def extract_tool_calls(self, model_output, request): {whole}
    def extract_tool_calls_streaming(self, previous_text, current_text, delta_text, *more): {streamed}
"""


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = 1", "registers no parser with vLLM's parser managers"),
        ("import vllm.model_executor.models", r"imports vllm\.model_executor, for which streamsieve has no stand-in"),
        ("import not_there_at_all", "imports not_there_at_all, which is not installed"),
        ("from vllm.reasoning import Nothing", "cannot be loaded: ImportError: cannot import name 'Nothing'"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("from vllm.reasoning import ReasoningParserManager as M\n@M.register_module('x')\nclass X: ...",
         "cannot be loaded: TypeError: X is no ReasoningParser"),
        (LAZY.format(whole="return self.vocab['a']", streamed="return None"),
         "parser 'mine' of .* cannot be used here: it asks for the vocabulary, and only parsers that look at text"),
        (LAZY.format(whole="...", streamed="return 1 if 5 in more[2] else None"), "it asks for token ids"),
        (LAZY.format(whole="...", streamed="return len(more[0]) or None"), "it asks for token ids"),
        (LAZY.format(whole="...", streamed="return [*more[1]] and more[1][0]"), "it asks for token ids"),
        (LAZY.format(whole="...", streamed="\n     try: self.model_tokenizer.encode('a')\n     except Exception: ..."),
         "it asks for the tokenizer's encode"),
        (LAZY.format(whole="raise KeyError('a')", streamed="..."), "cannot be used here: KeyError: 'a'"),
        ("from vllm.reasoning import *\nReasoningParserManager.register_module('x', module=ReasoningParser)",
         "NotImplementedError: ReasoningParser has no method that reads text"),
        ("from vllm.reasoning.basic_parsers import *\nfrom vllm.reasoning import ReasoningParserManager as M\n"
         "@M.register_module('x')\nclass X(BaseThinkingReasoningParser):\n start_token, end_token = '<a>', '</a>'\n"
         " def extract_reasoning_streaming(self, p, c, d, *ids): return self.end_token_id in ids[0]",
         "it asks for the id of its end token"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_the_reason(load: Load, source: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^tool_parser_plugin: .*{why}"):
        load(source)
    assert "mine" not in {entry["name"] for entry in registry.listing()["tool"]}


@pytest.mark.parametrize("source", ["not/there.py", "not_there_at_all"])
def test_neither_a_file_nor_a_module(source: str) -> None:
    with pytest.raises(ConfigurationError, match=f"reasoning_parser_plugin: '{source}' is neither a file nor a module"):
        loading.load(source, "reasoning_parser_plugin")


def test_names_that_are_taken_are_claimed_twice(load: Load) -> None:
    load(TOOLS.replace('"lines"', '"hermes"'))
    with pytest.raises(ConfigurationError, match=r"'hermes' is claimed by streamsieve itself and .*my_vllm_parser\.py"):
        chosen("hermes")


def test_message_formats_leave_nothing_for_another_parser(load: Load) -> None:
    load(REASONING)
    with pytest.raises(ConfigurationError, match=r"'plan'.*'openai' cannot work together"):
        chosen("openai", "plan")


def test_the_stand_ins_are_there_only_while_a_file_is_loaded(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    load(REASONING)
    assert not [name for name in sys.modules if name == "vllm" or name.startswith("vllm.")]
    assert "transformers" not in sys.modules
    with stand_ins():
        assert "vllm.reasoning" in sys.modules
    own = ModuleType("vllm")
    with stand_ins():
        sys.modules["vllm"] = own  # what somebody else put there meanwhile is left alone
    assert sys.modules.pop("vllm") is own


def test_transformers_that_is_installed_is_never_hidden() -> None:
    import transformers

    with stand_ins():
        assert sys.modules["transformers"] is transformers
    assert sys.modules["transformers"] is transformers


def test_an_installed_vllm_is_never_hidden(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own classes and managers are used, and only what the file adds to these is taken."""
    for part in ("reasoning", "tool_parsers"):
        (tmp_path / "vllm" / part).mkdir(parents=True)
    (tmp_path / "vllm" / "__init__.py").write_text("REAL = True\n")
    for part, kind, base in (("reasoning", "reasoning", "ReasoningParser"), ("tool_parsers", "tool", "ToolParser")):
        (tmp_path / "vllm" / part / "__init__.py").write_text(f"""
class {base}:
    def __init__(self, tokenizer, *args, **kwargs): self.model_tokenizer = tokenizer
class {base}Manager:
    found = {{"hermes": {base}}}
    @classmethod
    def list_registered(cls): return sorted(cls.found)
    @classmethod
    def get_{kind}_parser(cls, name): return cls.found[name]
    @classmethod
    def register_module(cls, name): return lambda parser: cls.found.setdefault(name, parser)
""")
    monkeypatch.syspath_prepend(tmp_path)
    found = load("""
import vllm
from vllm.reasoning import ReasoningParser, ReasoningParserManager
assert vllm.REAL
class Delta:
    reasoning, content = "r", None
@ReasoningParserManager.register_module("theirs")
class Theirs(ReasoningParser):
    def extract_reasoning(self, model_output, request): return model_output, None
    def extract_reasoning_streaming(self, *texts_and_ids): return Delta
""")
    assert found == ["theirs"]
    assert trays(read(chosen(reasoning_parser="theirs"), ["a"], REQUEST)) == ("r", None, [])


# While a reply is read


def source(**methods: str) -> str:
    return LAZY.format(**{"whole": "return None", "streamed": "return None"} | methods)


FAILING = source(
    whole="return 1 / (model_output[:1] != 'x')",
    streamed="""
        from types import SimpleNamespace as S
        if delta_text == "x": raise ValueError(delta_text)
        return S(content=delta_text, tool_calls=None)""",
)


def test_a_parser_that_fails_leaves_the_rest_as_content(load: Load) -> None:
    load(FAILING)
    message = read(chosen("mine"), list("ab x cd"), REQUEST)
    assert trays(message) == (None, "ab x cd", [])
    assert [(repair.offset, repair.rule) for repair in message.repairs] == [(3, "broken_message")]
    whole = read(chosen("mine"), ["x cd"], REQUEST, whole=True)
    assert trays(whole) == (None, "x cd", [])
    assert [repair.rule for repair in whole.repairs] == ["broken_message"]


CALLING = source(
    streamed="""
        import json
        from types import SimpleNamespace as S
        def call(index, name=None, arguments=None):
            return S(index=index, id=None, function={{"name": name, "arguments": arguments}})
        told = json.loads(delta_text) if delta_text[0] == "[" else []
        return S(content=None, tool_calls=[call(*item) for item in told])
""".replace("{{", "{").replace("}}", "}")
)


@pytest.mark.parametrize(
    ("deltas", "calls", "rules"),
    [
        ([[[0, "ping", "{}"]]], [("ping", "{}")], []),
        ([[[0, "ping"]], [[0, None, '{"a'], [0, None, '": 1}']]], [("ping", '{"a": 1}')], []),
        ([[[0, "ping", "{}"], [1, "save", "{}"]]], [("ping", "{}"), ("save", "{}")], []),
        ([[[0, "ping", '{"a']], [[1, "save", "{}"]]], [("ping", '{"a'), ("save", "{}")], ["broken_call"]),
        ([[[0, "ping", '{"a']]], [("ping", '{"a')], ["broken_call"]),
        ([[[0, "no name", "{}"]], [[1, "save", "{}"]]], [("save", "{}")], ["not_a_call"]),
        ([[[None, "ping", "{}"]]], [], []),
        ([[[3, None, "{}"]]], [], []),
    ],
)
def test_calls_come_as_the_parser_tells_them(
    load: Load, deltas: list[Any], calls: list[tuple[str, str]], rules: list[str]
) -> None:
    load(CALLING)
    message = read(chosen("mine"), map(json.dumps, deltas), REQUEST)
    assert trays(message) == (None, None, calls)
    assert [repair.rule for repair in message.repairs] == rules
    held = read(chosen("mine"), map(json.dumps, deltas), REQUEST, deliver="complete")
    assert trays(held)[2] == [call for call in calls if call[1].endswith("}")]


def test_arguments_that_were_read_and_not_sent_are_sent_at_the_end(load: Load) -> None:
    load(source(streamed="""
        from types import SimpleNamespace as S
        self.prev_tool_call_arr, self.streamed_args_for_tool = [{"name": "ping", "arguments": {"a": 1}}], ['{"a"']
        return S(content=None, tool_calls=[S(index=0, id=None, function=S(name="ping", arguments='{"a"'))])
""".replace("{", "{{").replace("}", "}}").format()))  # fmt: skip
    assert trays(read(chosen("mine"), ["a"], REQUEST))[2] == [("ping", '{"a": 1}')]


def test_each_reply_has_a_parser_of_its_own(load: Load) -> None:
    load(TOOLS)
    first, second = (chosen("lines").machine(REQUEST) for _ in range(2))
    first.feed("ping: 1\n")
    assert len(second.feed("ping: 2\n")) == 2
