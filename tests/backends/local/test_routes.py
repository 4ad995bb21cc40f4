"""The API over a tiny random model: a real engine behind uvicorn, and the openai client before it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from jsonschema import validate
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from streamsieve.backends import request_fields
from streamsieve.backends.application import application
from streamsieve.backends.local.model.loading import describe
from streamsieve.backends.local.server.application import LocalBackend
from streamsieve.backends.local.server.requests import KNOWN, Api
from streamsieve.backends.local.server.runtime import ModelOptions, Runtime
from streamsieve.backends.local.server.tokenizer import Tokenizer
from streamsieve.backends.loopback import loopback
from streamsieve.wire.settings import Settings
from tests.backends.local.waiting import wait_until

SLOTS, QUEUE, LONGEST = 2, 3, 512
MESSAGES: Any = [{"role": "user", "content": "Tides?"}]
ASK: dict[str, Any] = {"model": "tiny", "messages": MESSAGES, "max_tokens": 12, "temperature": 0}
SCHEMA: Any = {
    "type": "object",
    "properties": {"port": {"enum": ["Brest", "Roscoff"]}, "days": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["port", "days"],
    "additionalProperties": False,
}
TOOLS: Any = [
    {"type": "function", "function": {"name": "get_tide", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]


@pytest.fixture(scope="module")
def runtime(tiny_model: Qwen3ForCausalLM, byte_tokenizer: PreTrainedTokenizerFast) -> Runtime:
    model = describe(tiny_model, name="tiny", longest=LONGEST)
    options = ModelOptions(source=None, slots=SLOTS, queue=QUEUE)  # type: ignore[arg-type]  # it is in memory
    return Runtime.of(model, Tokenizer(byte_tokenizer), options, SETTINGS)


SETTINGS = Settings(reasoning_parser="qwen3", tool_parser="hermes", responses="translate")


@pytest.fixture(scope="module")
def url(runtime: Runtime) -> Iterator[str]:
    with loopback(application(LocalBackend(lambda progress: runtime), SETTINGS)) as root:
        wait_until(lambda: httpx2.get(root + "/health").status_code == 200)
        yield root


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0, timeout=60) as made:
        yield made


def text_of(message: Any) -> str:
    """Reasoning and content together: what a random model writes is in either."""
    return (getattr(message, "reasoning", None) or "") + (message.content or "")


# -- the same reply, in every form --


def test_streamed_and_whole_are_the_same(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**ASK).choices[0]
    chunks = list(client.chat.completions.create(**ASK, stream=True))
    deltas = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(text_of(one.delta) for one in deltas) == text_of(whole.message)
    assert [one.finish_reason for one in deltas if one.finish_reason] == [whole.finish_reason]
    assert whole.finish_reason == "length"


def test_greedy_text_is_that_of_generate(
    client: openai.OpenAI, tiny_model: Qwen3ForCausalLM, byte_tokenizer: PreTrainedTokenizerFast
) -> None:
    prompt = byte_tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, return_tensors="pt")
    ids = tiny_model.generate(**prompt, max_new_tokens=12, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    raw = client.chat.completions.create(**ASK, extra_body={"return_token_ids": True}).choices[0]
    assert raw.to_dict()["token_ids"] == ids.tolist()


def test_usage_counts_prompt_reply_and_cache(client: openai.OpenAI, byte_tokenizer: PreTrainedTokenizerFast) -> None:
    prompt = byte_tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=True)["input_ids"]
    client.chat.completions.create(**ASK)
    *_, last = client.chat.completions.create(**ASK, n=2, stream=True, stream_options={"include_usage": True})
    assert last.usage is not None
    assert last.usage.prompt_tokens == len(prompt)
    assert last.usage.completion_tokens == 24
    assert last.usage.total_tokens == len(prompt) + 24
    assert last.usage.prompt_tokens_details is not None
    assert last.usage.prompt_tokens_details.cached_tokens == len(prompt) - 1


def test_choices_differ_and_seeds_repeat(client: openai.OpenAI) -> None:
    hot = {**ASK, "temperature": 2.0, "seed": 7, "n": 3}
    first, again = ([text_of(one.message) for one in client.chat.completions.create(**hot).choices] for _ in "ab")
    assert first == again
    assert len(set(first)) == 3


def test_logprobs_of_a_chat(client: openai.OpenAI) -> None:
    choice = client.chat.completions.create(**ASK, logprobs=True, top_logprobs=3).choices[0]
    assert choice.logprobs is not None
    assert choice.logprobs.content is not None
    assert len(choice.logprobs.content) == 12
    for token in choice.logprobs.content:
        assert [top.logprob for top in token.top_logprobs] == sorted(
            (t.logprob for t in token.top_logprobs), reverse=True
        )
        assert token.logprob == token.top_logprobs[0].logprob
        assert token.logprob <= 0


def test_a_stop_string_ends_the_reply(client: openai.OpenAI) -> None:
    ask: dict[str, Any] = {"model": "tiny", "prompt": "xyz", "max_tokens": 12, "temperature": 0}
    text = client.completions.create(**ask).choices[0].text
    stop = text[4:6]
    choice = client.completions.create(**ask, stop=[stop]).choices[0]
    assert choice.text == text[: text.index(stop)]
    assert (choice.finish_reason, choice.to_dict()["stop_reason"]) == ("stop", stop)


def test_completions_of_bare_prompts(client: openai.OpenAI) -> None:
    ask: dict[str, Any] = {"model": "tiny", "max_tokens": 5, "temperature": 0}
    both = client.completions.create(**ask, prompt=["ab", "xyz"], n=2)
    assert [choice.index for choice in both.choices] == [0, 1, 2, 3]
    alone = client.completions.create(**ask, prompt="xyz").choices[0]
    assert {choice.text for choice in both.choices[2:]} == {alone.text}
    assert both.usage is not None
    assert (both.usage.prompt_tokens, both.usage.completion_tokens) == (5, 20)
    ids = httpx2.post(f"{client.base_url}../tokenize", json={"prompt": "xyz"}).json()["tokens"]
    assert client.completions.create(**ask, prompt=ids, echo=True).choices[0].text == "xyz" + alone.text
    assert "".join(one.choices[0].text for one in client.completions.create(**ask, prompt="xyz", stream=True)) == (
        alone.text
    )


# -- what binds a reply --


@pytest.mark.parametrize("stream", [False, True])
def test_a_forced_call_follows_its_schema(client: openai.OpenAI, stream: bool) -> None:
    named = {"type": "function", "function": {"name": "get_tide"}}
    ask = {**ASK, "max_tokens": 200, "temperature": 1.5, "seed": 3, "tools": TOOLS, "tool_choice": named,
           "extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}  # fmt: skip
    if stream:
        calls = [call for chunk in client.chat.completions.create(**ask, stream=True)
                 for choice in chunk.choices for call in choice.delta.tool_calls or ()]  # fmt: skip
        name, arguments = calls[0].function.name, "".join(call.function.arguments or "" for call in calls)
    else:
        [call] = client.chat.completions.create(**ask).choices[0].message.tool_calls or ()
        name, arguments = call.function.name, call.function.arguments
    assert name == "get_tide"
    validate(json.loads(arguments), SCHEMA)


def test_an_answer_follows_its_schema(client: openai.OpenAI) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "tide", "schema": SCHEMA, "strict": True}}
    ask = {**ASK, "max_tokens": 200, "temperature": 1.5, "seed": 3, "response_format": form}
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    message = client.chat.completions.create(**ask, extra_body=off).choices[0].message
    validate(json.loads(message.content or ""), SCHEMA)


def test_a_completion_follows_its_pattern(client: openai.OpenAI) -> None:
    ask = {"model": "tiny", "prompt": "x", "max_tokens": 20, "temperature": 1.5, "seed": 1}
    text = client.completions.create(**ask, extra_body={"structured_outputs": {"regex": "[ab]{3}c"}}).choices[0].text
    assert text[:3].strip("ab") == ""
    assert text[3:] == "c"


def test_the_responses_api_gets_the_same_call(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "name": "get_tide", "parameters": SCHEMA, "strict": True}
    response = client.responses.create(
        model="tiny",
        input="Tides?",
        max_output_tokens=200,
        temperature=1.5,
        tools=[tool],
        tool_choice={"type": "function", "name": "get_tide"},
        extra_body={"seed": 3, "chat_template_kwargs": {"enable_thinking": False}},
    )
    [call] = [item for item in response.output if item.type == "function_call"]
    validate(json.loads(call.arguments), SCHEMA)
    assert response.usage is not None
    assert response.usage.output_tokens > 10


def test_only_the_parser_sees_the_end_of_the_turn(client: openai.OpenAI, runtime: Runtime) -> None:
    [end] = runtime.kept_ends
    assert runtime.tokenizer.token(end) == "<|im_end|>"
    ask = {**ASK, "extra_body": {"logit_bias": {str(end): 100}, "min_tokens": 2, "return_token_ids": True}}
    choice = client.chat.completions.create(**ask).choices[0]
    assert choice.finish_reason == "stop"
    assert choice.to_dict()["token_ids"][-1] == end
    assert "<|im_end|>" not in text_of(choice.message)


# -- what is refused --


def test_a_body_that_is_too_long(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_fields, "MAX_BODY", 100)
    answer = httpx2.post(url + "/v1/completions", json={"prompt": "x" * 200})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


@pytest.mark.parametrize(
    ("body", "status", "param", "code"),
    [
        (b"{", 400, None, None),
        (b"[]", 400, None, None),
        ({"messages": []}, 400, "messages", None),
        ({"messages": [{"role": "user", "content": "half of a pair: \ud83d"}]}, 400, "messages", None),
        ({"model": "other"}, 404, "model", "model_not_found"),
        ({"top_p": 0}, 400, "top_p", None),
        ({"temperature": "hot"}, 400, "temperature", None),
        ({"seed": 0.5}, 400, "seed", None),
        ({"n": 0}, 400, "n", None),
        ({"n": 1000}, 400, "n", None),
        ({"max_tokens": 0}, 400, "max_tokens", None),
        ({"stop": [""]}, 400, "stop", None),
        ({"stop": 1}, 400, "stop", None),
        ({"stop": ["x"] * 17}, 400, "stop", None),
        ({"stop_token_ids": [99999]}, 400, "stop_token_ids", None),
        ({"logit_bias": {"x": 1}}, 400, "logit_bias", None),
        ({"logit_bias": {"99999": 1}}, 400, "logit_bias", None),
        ({"logit_bias": [1]}, 400, "logit_bias", None),
        ({"top_logprobs": 2}, 400, "top_logprobs", None),
        ({"logprobs": True, "top_logprobs": 21}, 400, "top_logprobs", None),
        ({"stream_options": {"include_usage": True}}, 400, "stream_options", None),
        ({"max_token": 5}, 400, "max_token", None),
        ({"best_of": 2}, 400, "best_of", None),
        ({"modalities": ["audio"]}, 400, "modalities", None),
        ({"functions": [{"name": "f"}]}, 400, "functions", None),
        ({"tools": {}}, 400, "tools", None),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, 400, "tools", None),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": 1}}]}, 400, "tools", None),
        ({"tool_choice": "required"}, 400, "tool_choice", None),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}}, 400, "tool_choice", None),
        ({"response_format": {"type": "xml"}}, 400, "response_format", None),
        ({"messages": [{"role": "user", "content": "x" * 600}]}, 400, "messages", "context_length_exceeded"),
    ],
)
def test_what_is_refused_and_how(
    url: str, body: bytes | dict[str, Any], status: int, param: str | None, code: str | None
) -> None:
    content = body if isinstance(body, bytes) else json.dumps({**ASK, **body}).encode()
    answer = httpx2.post(url + "/v1/chat/completions", content=content)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (status, param, code)
    assert error["type"] == "invalid_request_error"
    assert error["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"user": "me", "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "safety_identifier": "x"},
        {"best_of": 1, "suffix": "", "modalities": ["text"], "temperature": None, "frequency_penalty": None},
        {"min_p": 0.1, "top_k": 5, "repetition_penalty": 1.1, "presence_penalty": 0.5, "min_tokens": 2},
        {"skip_special_tokens": False, "ignore_eos": True, "logit_bias": {"5": -100}},
    ],
)
def test_what_is_taken(url: str, body: dict[str, Any]) -> None:
    assert httpx2.post(url + "/v1/chat/completions", json={**ASK, **body}).status_code == 200


@pytest.mark.parametrize(
    ("prompt", "param"), [("", "prompt"), (None, "prompt"), ([], "prompt"), ([[]], "prompt"), ([["x"]], "prompt"),
                          ([-1], "prompt"), (["x", 1], "prompt"), ([[[1]]], "prompt"), ("\ud83d", "prompt")]
)  # fmt: skip
def test_prompts_that_are_none(url: str, prompt: object, param: str) -> None:
    content = json.dumps({"model": "tiny", "prompt": prompt}).encode()
    answer = httpx2.post(url + "/v1/completions", content=content)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_logprobs_of_an_echo_are_not_had(url: str) -> None:
    answer = httpx2.post(url + "/v1/completions", json={"prompt": "x", "echo": True, "logprobs": 1})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "echo")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("completions", {"prompt": "x" * 100_000}, "prompt"),
        ("chat/completions", {"messages": [{"role": "user", "content": "x" * 100_000}]}, "messages"),
    ],
)
def test_no_tokens_are_made_of_what_is_too_long_by_far(
    url: str, path: str, body: Any, param: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokenizer, "encode", None)
    answer = httpx2.post(f"{url}/v1/{path}", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, param, "context_length_exceeded")


def _nested(depth: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


ODD: list[Any] = [
    True, 0, -1, 1.5, 10**30, float("nan"), float("inf"), "", "x", "\ud83d", "a\x00b", "auto", "required", [], [None],
    ["x"], ["\ud83d"], [[]], [[1, 2]], [{}], {}, {"a": 1}, {"type": None}, {"type": []}, {"\ud83d": 1}, {"0": 1e30},
    {"type": "json_schema", "json_schema": {"schema": _nested(300)}},
    {"type": "json_schema", "json_schema": {"schema": {"$ref": "#"}}},
    {"type": "json_schema", "json_schema": {"schema": {"type": "string", "format": {}, "maxLength": 2}}},
    {"type": "json_schema", "json_schema": {"schema": {"properties": {"\ud83d": {}}, "required": [1, None]}}},
    {"type": "structural_tag", "format": {}},
    {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": [1], "tags": [None]}},
    {"regex": "("}, {"regex": "\ud83d"}, {"choice": ["\ud83d"]}, {"grammar": "root ::= root"}, {"json": "{"},
    [{"type": "function", "function": {"name": "\ud83d", "parameters": {}}}],
    [{"type": "function", "function": {"name": "f", "parameters": _nested(300)}}],
    [{"role": "user", "content": "\ud83d"}], [{"role": "user"}], [{"role": "assistant", "tool_calls": [{}]}],
    [{"role": "user", "content": [{"type": "text"}]}],
]  # fmt: skip


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_no_field_breaks_the_server(url: str, api: Api) -> None:
    """Whatever is in it: the request is served, or refused as it should be."""
    path, prompt = ("chat/completions", {"messages": MESSAGES}) if api == "chat" else ("completions", {"prompt": "x"})
    pairs = [(name, value) for name in sorted(KNOWN[api]) for value in ODD]
    with httpx2.Client(base_url=url, timeout=60) as client:
        for name, value in random.Random(0).sample(pairs, 300):
            body = json.dumps({**prompt, "max_tokens": 2, name: value}).encode()
            answer = client.post(f"/v1/{path}", content=body)
            if answer.status_code != 200:
                assert answer.status_code in (400, 404), (name, value, answer.text)
                assert answer.json()["error"]["message"], (name, value)


def test_a_route_that_is_none(url: str) -> None:
    assert httpx2.get(url + "/v1/embeddings").json()["error"]["code"] == "unknown_url"
    assert httpx2.get(url + "/v1/chat/completions").status_code == 405


# -- many at once --


def test_more_than_may_wait_are_told_to_come_back(client: openai.OpenAI, runtime: Runtime) -> None:
    with pytest.raises(openai.RateLimitError) as raised:
        client.chat.completions.create(**{**ASK, "n": SLOTS + QUEUE + 1, "max_tokens": 400}, extra_body=ENDLESS)
    assert int(raised.value.response.headers["retry-after"]) >= 1
    assert raised.value.code == "rate_limit_exceeded"
    wait_until(lambda: runtime.engine.stats().running + runtime.engine.stats().queued == 0)
    with pytest.raises(openai.RateLimitError):  # an echo, which is there at once, does not begin the reply
        client.completions.create(
            model="tiny", prompt=["x"] * 9, echo=True, stream=True, max_tokens=400, extra_body=ENDLESS
        )
    wait_until(lambda: runtime.engine.stats().running + runtime.engine.stats().queued == 0)


ENDLESS = {"ignore_eos": True}


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_its_slots(url: str, runtime: Runtime, stream: bool) -> None:
    body = {**ASK, "n": 2, "max_tokens": 480, "stream": stream, **ENDLESS}
    with httpx2.Client(timeout=httpx2.Timeout(20, read=None if stream else 0.3)) as http:
        if stream:
            with http.stream("POST", url + "/v1/chat/completions", json=body) as answer:
                next(answer.iter_bytes())
        else:
            with pytest.raises(httpx2.ReadTimeout):
                http.post(url + "/v1/chat/completions", json=body)
    wait_until(lambda: runtime.engine.stats().running == 0)
    assert runtime.engine.stats().generated_tokens < 100_000


# -- beside the replies --


def test_the_model_is_listed(client: openai.OpenAI, url: str) -> None:
    [model] = client.models.list().data
    assert (model.id, model.to_dict()["max_model_len"]) == ("tiny", LONGEST)
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


@pytest.mark.parametrize("text", ["Hello 😀", "<think>\n\n</think>", "a<|im_end|>b"])
def test_text_survives_the_tokenizer(url: str, text: str) -> None:
    made = httpx2.post(url + "/tokenize", json={"prompt": text, "return_token_strs": True}).json()
    assert made["count"] == len(made["tokens"]) == len(made["token_strs"])
    assert made["max_model_len"] == LONGEST
    assert httpx2.post(url + "/detokenize", json={"tokens": made["tokens"]}).json() == {"prompt": text}


def test_a_chat_is_tokenized_as_it_is_asked(url: str, client: openai.OpenAI) -> None:
    made = httpx2.post(url + "/tokenize", json={"messages": MESSAGES}).json()
    usage = client.chat.completions.create(**ASK).usage
    assert usage is not None
    assert made["count"] == usage.prompt_tokens


def test_the_request_id_comes_back(url: str) -> None:
    assert httpx2.get(url + "/health", headers={"x-request-id": "mine"}).headers["x-request-id"] == "mine"
    assert len(httpx2.get(url + "/health").headers["x-request-id"]) == 32
    long = httpx2.get(url + "/health", headers={"x-request-id": "x" * 200}).headers["x-request-id"]
    assert len(long) == 32


def test_the_numbers(url: str, client: openai.OpenAI) -> None:
    client.chat.completions.create(**ASK)
    answer = httpx2.get(url + "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    numbers = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert float(numbers['streamsieve_replies_total{outcome="200",route="chat"}']) >= 1
    assert float(numbers["streamsieve_generated_tokens_total"]) >= 12
    assert float(numbers["streamsieve_time_to_first_text_seconds_count"]) >= 1
    assert float(numbers["streamsieve_running_replies"]) == 0
