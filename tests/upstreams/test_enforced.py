"""Calls and answers that a request demands, from upstreams that want to write something else."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
import pytest
from streamsieve_standins.llama_cpp import LlamaCpp
from streamsieve_standins.ollama import Ollama
from streamsieve_standins.openai import OpenAi
from streamsieve_standins.sglang import Sglang
from streamsieve_standins.standin import StandIn
from streamsieve_standins.tgi import Tgi
from streamsieve_standins.vllm import Vllm

from streamsieve.wire.settings import Settings

SCHEMA = {
    "type": "object",
    "properties": {
        "port": {"type": "string", "minLength": 2, "maxLength": 12},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "unit": {"enum": ["m", "ft"]},
    },
    "required": ["port", "days", "unit"],
    "additionalProperties": False,
}
EMPTY = {"type": "object", "properties": {}, "additionalProperties": False}
SCHEMAS = {"get_tide": SCHEMA, "ping": EMPTY}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()
]
ANSWER = {
    "type": "object",
    "properties": {"high": {"type": "boolean"}},
    "required": ["high"],
    "additionalProperties": False,
}
MESSAGES: Any = [{"role": "user", "content": "Tides?"}]
THINKS = "I had better say it.</think>\n\nThe tide is high."
UPSTREAMS: dict[str, type[StandIn]] = {
    "vllm": Vllm, "sglang": Sglang, "llama.cpp": LlamaCpp, "ollama": Ollama, "tgi": Tgi, "openai": OpenAi,
}  # fmt: skip
RAW = ("vllm", "sglang", "llama.cpp", "openai")
PARSERS = {"reasoning_parser": "qwen3", "tool_parser": "hermes"}


def settings(upstream: Any, **options: Any) -> Settings:
    return Settings(upstream=upstream, **{**PARSERS, **options})


async def reply(client: openai.AsyncOpenAI, stream: bool = False, **more: Any) -> Any:
    """The first choice, as the client gathers it."""
    asked: Any = {"model": "m", "messages": MESSAGES, "tools": TOOLS, **more}
    if not stream:
        return (await client.chat.completions.create(**asked)).choices[0]
    async with client.chat.completions.stream(**asked) as events:
        return (await events.get_final_completion()).choices[0]


def calls(choice: Any) -> list[tuple[str, Any]]:
    """The calls, each held to its schema."""
    made = []
    for call in choice.message.tool_calls or ():
        arguments = json.loads(call.function.arguments)
        jsonschema.validate(arguments, SCHEMAS[call.function.name])
        made.append((call.function.name, arguments))
    return made


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_required(connect: Any, way: str, upstream: str, stream: bool) -> None:
    there = UPSTREAMS[upstream](THINKS)
    choice = await reply(connect(way, there, settings(upstream)), stream, tool_choice="required")
    assert calls(choice)
    assert choice.message.content is None
    assert choice.finish_reason == "tool_calls"
    assert there.prompted[-1]["tools"], "the template did not get the tools"


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("name", SCHEMAS)
async def test_named(connect: Any, upstream: str, name: str) -> None:
    there = UPSTREAMS[upstream](THINKS)
    named = {"type": "function", "function": {"name": name}}
    choice = await reply(connect("client", there, settings(upstream)), tool_choice=named)
    assert [called for called, _ in calls(choice)] == [name]
    assert choice.finish_reason == ("stop" if upstream != "tgi" else "tool_calls")


@pytest.mark.parametrize("upstream", ["vllm", "sglang", "openai"])
async def test_the_thinking_is_free(connect: Any, upstream: str) -> None:
    choice = await reply(connect("client", UPSTREAMS[upstream](THINKS), settings(upstream)), tool_choice="required")
    assert choice.message.reasoning == "I had better say it."
    assert calls(choice)


@pytest.mark.parametrize("upstream", ["llama.cpp", "ollama"])
async def test_the_thinking_is_off_where_it_would_be_bound(connect: Any, upstream: str) -> None:
    there = UPSTREAMS[upstream](THINKS)
    choice = await reply(connect("client", there, settings(upstream)), tool_choice="required")
    assert not there.prompted[-1]["thinks"]
    assert not hasattr(choice.message, "reasoning")
    assert calls(choice)


SWITCHED_OFF = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize("upstream", RAW)
async def test_with_thinking_switched_off(connect: Any, upstream: str) -> None:
    client = connect("client", UPSTREAMS[upstream]("The tide is high."), settings(upstream))
    if upstream == "openai":
        with pytest.raises(openai.BadRequestError, match="chat_template_kwargs"):  # it does not know of it
            await reply(client, tool_choice="required", extra_body=SWITCHED_OFF)
        return
    choice = await reply(client, tool_choice="required", extra_body=SWITCHED_OFF)
    assert calls(choice)
    assert not hasattr(choice.message, "reasoning")


# Parsers of many kinds: JSON, tags, Python, messages, no thinking, thinking that only an opener begins; and what ends
# free text in each.
FAMILIES: list[tuple[dict[str, str], tuple[str, ...]]] = [
    ({"tool_parser": "hermes"}, ()),
    ({"tool_parser": "qwen3_coder", "reasoning_parser": "qwen3"}, ("</think>", "\n</parameter>\n", "\n</parameter>")),
    ({"tool_parser": "mistral", "reasoning_parser": "mistral"}, ("[/THINK]", "</think>")),
    ({"tool_parser": "llama3_json"}, ()),
    ({"tool_parser": "pythonic"}, ()),
    ({"tool_parser": "xlam"}, ()),
    ({"tool_parser": "deepseek_v3", "reasoning_parser": "deepseek_r1"}, ("</think>",)),
    ({"tool_parser": "glm45", "reasoning_parser": "glm45"}, ("</think>", "</arg_value>")),
    ({"tool_parser": "kimi_k2"}, ()),
    ({"tool_parser": "minimax_m2", "reasoning_parser": "minimax_m2"}, ("</think>", "</parameter>")),
    ({"tool_parser": "granite", "reasoning_parser": "granite"}, ("Here is my response:",)),
    ({"tool_parser": "openai"}, ("<|end|>", "<|call|>")),
]


@pytest.mark.parametrize(("parsers", "habits"), FAMILIES, ids=[parsers["tool_parser"] for parsers, _ in FAMILIES])
@pytest.mark.parametrize("upstream", ["vllm", "llama.cpp"])
async def test_every_kind_of_format(connect: Any, upstream: Any, parsers: Any, habits: Any) -> None:
    end = "<|call|>" if parsers["tool_parser"] == "openai" else "<|im_end|>"
    there = UPSTREAMS[upstream]("The tide is high.", habits=habits, end=end)
    client = connect("client", there, Settings(upstream=upstream, **parsers))
    if upstream == "llama.cpp" and parsers.get("reasoning_parser") in ("deepseek_r1", "minimax_m2"):
        with pytest.raises(openai.BadRequestError, match="would bind the thinking"):
            await reply(client, tool_choice="required")
        return
    assert calls(await reply(client, tool_choice="required"))


@pytest.mark.parametrize("upstream", RAW)
async def test_one_call_at_most(connect: Any, upstream: str) -> None:
    one = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
    client = connect("client", UPSTREAMS[upstream](f"</think>{one}\n{one}"), settings(upstream))
    choice = await reply(client, tool_choice="required", parallel_tool_calls=False)
    assert len(calls(choice)) == 1
    assert choice.message.content is None


RESPONSE_FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER}}
CALL = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
AS_JSON = '[{"name": "ping", "parameters": {}}]'
EITHER = [
    ("vllm", f"Hm.</think>\n\n{CALL}", True),
    ("vllm", 'Hm.</think>\n\n{"high": true}', False),
    ("sglang", f"Hm.</think>{CALL}", True),
    ("sglang", 'Hm.</think>{"high": true}', False),
    ("llama.cpp", AS_JSON, True),
    ("llama.cpp", '{"high": true}', False),
    ("openai", f"<think>Hm.</think>{AS_JSON}", True),
    ("openai", '<think>Hm.</think>{"high": true}', False),
    ("ollama", AS_JSON, True),
    ("ollama", '{"high": true}', False),
]


@pytest.mark.parametrize(("upstream", "wanted", "called"), EITHER)
async def test_a_call_or_an_answer_of_the_schema(
    connect: Any, way: str, upstream: str, wanted: str, called: bool
) -> None:
    client = connect(way, UPSTREAMS[upstream](wanted), settings(upstream))
    choice = await reply(client, tool_choice="auto", response_format=RESPONSE_FORMAT)
    assert calls(choice) == ([("ping", {})] if called else [])
    assert choice.message.content == (None if called else '{"high": true}')


@pytest.mark.parametrize("upstream", ["vllm", "sglang", "llama.cpp"])
async def test_nothing_else_than_a_call_or_the_schema(connect: Any, upstream: str) -> None:
    choice = await reply(
        connect("client", UPSTREAMS[upstream](THINKS), settings(upstream)), response_format=RESPONSE_FORMAT
    )
    if not calls(choice):
        jsonschema.validate(json.loads(choice.message.content), ANSWER)


@pytest.mark.parametrize("upstream", ["vllm", "sglang", "openai"])
async def test_a_response_format_does_not_bind_the_thinking(connect: Any, upstream: str) -> None:
    client = connect("client", UPSTREAMS[upstream](THINKS), settings(upstream))
    choice = await reply(client, tools=openai.omit, response_format=RESPONSE_FORMAT)
    assert choice.message.reasoning == "I had better say it."
    jsonschema.validate(json.loads(choice.message.content), ANSWER)


async def test_a_response_format_that_would_bind_the_thinking_switches_it_off(connect: Any) -> None:
    there = LlamaCpp(THINKS)
    choice = await reply(
        connect("client", there, settings("llama.cpp")), tools=openai.omit, response_format=RESPONSE_FORMAT
    )
    assert not there.prompted[-1]["thinks"]
    jsonschema.validate(json.loads(choice.message.content), ANSWER)


FUNCTION = "</think>" + '<tool_call>\n{"name": "pong", "arguments": {"port": 7}}\n</tool_call>'
WRONG_ARGUMENTS = "</think>" + '<tool_call>\n{"name": "get_tide", "arguments": {"port": 7}}\n</tool_call>'
LEVELS = [  # level, what the tools say of strict, what the model wants, whether it gets its way
    ("auto", None, FUNCTION, True),
    ("auto", None, WRONG_ARGUMENTS, True),
    ("auto", True, FUNCTION, False),
    ("auto", True, WRONG_ARGUMENTS, False),
    ("function", None, FUNCTION, False),
    ("function", None, WRONG_ARGUMENTS, True),
    ("function", True, WRONG_ARGUMENTS, False),
    ("parameter", None, FUNCTION, False),
    ("parameter", None, WRONG_ARGUMENTS, False),
    ("parameter", False, WRONG_ARGUMENTS, False),
]


@pytest.mark.parametrize(("level", "strict", "wanted", "free"), LEVELS)
async def test_strict_levels(connect: Any, level: str, strict: bool | None, wanted: str, free: bool) -> None:
    said = {} if strict is None else {"strict": strict}
    tools = [{"type": "function", "function": {**tool["function"], **said}} for tool in TOOLS]
    client = connect("client", Vllm(wanted), settings("vllm", tool_strict_level=level))
    (call,) = (await reply(client, tools=tools)).message.tool_calls
    assert (json.loads(call.function.arguments) == {"port": 7}) == free
    if not free:
        jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])


@pytest.mark.parametrize(("strict", "free"), [(None, False), (True, False), (False, True)])
async def test_required_calls_follow_their_schema_unless_the_tool_says_otherwise(
    connect: Any, strict: bool | None, free: bool
) -> None:
    said = {} if strict is None else {"strict": strict}
    tools = [{"type": "function", "function": {**TOOLS[0]["function"], **said}}]
    choice = await reply(
        connect("client", Vllm(WRONG_ARGUMENTS), settings("vllm")), tools=tools, tool_choice="required"
    )
    (call,) = choice.message.tool_calls
    assert (json.loads(call.function.arguments) == {"port": 7}) == free


async def test_an_answer_stays_free_at_every_level(connect: Any) -> None:
    for level in ("auto", "function", "parameter"):
        client = connect("client", Vllm(THINKS), settings("vllm", tool_strict_level=level))
        choice = await reply(client)
        assert (choice.message.content, choice.message.tool_calls) == ("The tide is high.", None)


ALLOWED = [{"type": "function", "function": {"name": "ping"}}]


@pytest.mark.parametrize("upstream", ["vllm", "sglang", "llama.cpp", "openai", "ollama", "tgi"])
async def test_allowed_tools(connect: Any, upstream: str) -> None:
    there = UPSTREAMS[upstream](THINKS)
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": ALLOWED}}
    made = calls(await reply(connect("client", there, settings(upstream)), tool_choice=choice))
    assert {name for name, _ in made} == {"ping"}
    assert [tool["function"]["name"] for tool in there.asked[-1]["tools"]] == ["ping"]


CONFLICTS: list[tuple[str, dict[str, Any], str]] = [
    ("vllm", {"structured_outputs": {"regex": "a"}}, "structured_outputs"),
    ("sglang", {"regex": "a"}, "regex"),
    ("llama.cpp", {"grammar": 'root ::= "a"'}, "grammar"),
    ("vllm", {"response_format": {"type": "structural_tag", "format": {"type": "any_text"}}}, "response_format"),
]


@pytest.mark.parametrize(("upstream", "own", "named"), CONFLICTS)
async def test_a_constraint_of_the_clients_own(connect: Any, upstream: str, own: Any, named: str) -> None:
    client = connect("client", UPSTREAMS[upstream]("a"), settings(upstream))
    with pytest.raises(openai.BadRequestError, match=rf"tool_choice cannot be enforced.*{named}") as error:
        await reply(client, tool_choice="required", extra_body=own)
    assert error.value.param == "tool_choice"


async def test_best_effort(connect: Any) -> None:
    """What cannot be enforced goes on without; the model may do it all the same."""
    there = LlamaCpp(f"Hm.</think>{CALL}")
    parsers = {"reasoning_parser": "deepseek_r1", "tool_parser": "hermes"}
    client = connect("client", there, settings("llama.cpp", enforcement="best_effort", **parsers))
    choice = await reply(client, tool_choice="required")
    assert (choice.message.reasoning, calls(choice)) == ("Hm.", [("ping", {})])
    assert there.asked[-1]["tool_choice"] == "none"
