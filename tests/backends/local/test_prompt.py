"""Requests as prompts: what templates are given, what is refused, and what of a prompt belongs to the reply."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from streamsieve.backends.local.server.prompt import ChatTemplate
from streamsieve.backends.openai_error import ApiError

SHOWING = "{{ messages | tojson }}{{ tools | tojson if tools }}{{ '<gen>' if add_generation_prompt }}"
TOOL: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
USER = {"role": "user", "content": "Hi"}


def call(arguments: object) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}


def rendered(template: str, *messages: dict[str, Any], **more: Any) -> str:
    return ChatTemplate(template, {"bos_token": "<s>"}).render({"messages": [*messages], **more}).text


def shown(*messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """The messages as a template gets them."""
    text = rendered(SHOWING, *messages, add_generation_prompt=False, **more)
    made: list[dict[str, Any]] = json.loads(text)
    return made


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, {"text": "c"}], "a\nb\nc"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([], ""),
    ],
)
def test_content_is_text(content: object, text: str) -> None:
    assert shown({"role": "user", "content": content})[0]["content"] == text


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_is_there_under_every_name(name: str) -> None:
    message = shown(USER, {"role": "assistant", "content": "b", name: "because"})[1]
    assert {message[key] for key in ("reasoning", "reasoning_content", "thinking")} == {"because"}


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": ', '{"a": '),
        ("[1]", "[1]"),
    ],
)
def test_arguments_of_earlier_calls_are_objects(sent: object, given: object) -> None:
    message = shown(USER, {"role": "assistant", "content": None, "tool_calls": [call(sent)]})[1]
    assert message["tool_calls"][0]["function"]["arguments"] == given


def test_a_template_that_wants_text_gets_text() -> None:
    template = "{% for c in messages[0].tool_calls %}{{ '<' + c.function.arguments + '>' }}{% endfor %}"
    turn = {"role": "assistant", "content": None, "tool_calls": [call('{"é": 1}'), call({"b": 2})]}
    assert rendered(template, turn, add_generation_prompt=False) == '<{"é": 1}><{"b": 2}>'


@pytest.mark.parametrize(("template", "role"), [(SHOWING, "system"), (SHOWING + "{# developer #}", "developer")])
def test_developers_are_the_system_to_templates_that_do_not_know_them(template: str, role: str) -> None:
    text = rendered(template, {"role": "developer", "content": "x"}, add_generation_prompt=False)
    assert json.loads(text)[0]["role"] == role


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"tools": [TOOL]}, json.dumps([TOOL])),
        ({"tools": [TOOL], "tool_choice": "none"}, ""),
        ({"tools": []}, ""),
        ({}, ""),
    ],
)
def test_tools_are_shown_where_they_may_be_called(more: dict[str, Any], text: str) -> None:
    assert rendered("{{ tools | tojson if tools }}", USER, add_generation_prompt=False, **more) == text


def test_requests_with_tools_have_a_template_of_their_own_where_there_is_one() -> None:
    template = ChatTemplate("plain", {}, tool_source="with tools")
    assert template.render({"messages": [USER]}).text == "plain"
    assert template.render({"messages": [USER], "tools": [TOOL]}).text == "with tools"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "<s>|||"),
        ({"chat_template_kwargs": {"enable_thinking": False}}, "<s>||False|"),
        ({"reasoning_effort": "low"}, "<s>|low||"),
        ({"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "high"}}, "<s>|high||"),
        ({"documents": [{"title": "t", "text": "d"}]}, "<s>|||d"),
    ],
)
def test_the_variables_of_the_request(more: dict[str, Any], text: str) -> None:
    template = "{{ bos_token }}|{{ reasoning_effort }}|{{ enable_thinking }}|{{ documents[0].text if documents }}"
    assert rendered(template, USER, **more) == text


CHAT = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</end>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{{ '<think></think>' if enable_thinking is false }}{% endif %}"
)


@pytest.mark.parametrize(
    ("messages", "more", "tail"),
    [
        ([USER], {}, "<assistant>"),
        ([{"role": "user", "content": "<think>"}], {}, "<assistant>"),
        ([USER], {"chat_template_kwargs": {"enable_thinking": False}}, "<assistant><think></think>"),
        ([USER], {"add_generation_prompt": False}, ""),
        ([USER, {"role": "assistant", "content": "<think>so"}], {"continue_final_message": True},
         "<assistant><think>so"),
    ],
)  # fmt: skip
def test_the_tail_is_what_stands_behind_the_conversation(messages: Any, more: dict[str, Any], tail: str) -> None:
    prompt = ChatTemplate(CHAT, {}).render({"messages": messages, **more})
    assert prompt.tail == tail
    assert prompt.text.endswith(tail)


def test_a_template_that_takes_no_half_conversation_has_a_tail_all_the_same() -> None:
    template = "{% if not add_generation_prompt %}{{ raise_exception('no') }}{% endif %}" + "x" * 9000 + "<think>"
    tail = ChatTemplate(template, {}).render({"messages": [USER]}).tail
    assert tail.endswith("x<think>")
    assert len(tail) < 9000


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({"messages": []}, "messages", "at least one"),
        ({"messages": [{"content": "x"}]}, "messages[0]", "role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "string or a list"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content", "'image_url'"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]}, "messages[0].content", "text"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content", "part"),
        ({"messages": [{"role": "assistant", "tool_calls": "x"}]}, "messages[0].tool_calls", "list"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls", "function.name"),
        ({"messages": [USER], "chat_template_kwargs": 1}, "chat_template_kwargs", "object"),
        ({"messages": [USER], "chat_template_kwargs": {"messages": []}}, "chat_template_kwargs", "'messages'"),
        ({"messages": [USER], "continue_final_message": True, "add_generation_prompt": True},
         "continue_final_message", "together"),
        ({"messages": [USER, {"role": "refused", "content": ""}]}, "messages", "no such role"),
        ({"messages": [{"role": "broken", "content": ""}]}, "messages", "'nothing' is undefined"),
    ],
)  # fmt: skip
def test_what_no_prompt_can_be_made_of(body: dict[str, Any], param: str, said: str) -> None:
    template = (
        "{% for m in messages %}{% if m.role == 'refused' %}{{ raise_exception('no such role') }}{% endif %}"
        "{% if m.role == 'broken' %}{{ nothing.at.all }}{% endif %}{% endfor %}"
    )
    with pytest.raises(ApiError) as raised:
        ChatTemplate(template, {}).render(body)
    assert (raised.value.status, raised.value.param) == (400, param)
    assert said in raised.value.message


def test_rendering_needs_no_torch() -> None:
    code = "import sys, streamsieve.backends.local.server.prompt; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "False\n"
