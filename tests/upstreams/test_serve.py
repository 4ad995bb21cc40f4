"""`streamsieve serve --dialect`, as a process between the plain client and an upstream on loopback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import openai
from streamsieve_standins.vllm import Vllm

from streamsieve.backends.loopback import loopback

TOOLS: Any = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}]
SERVE = (sys.executable, "-m", "streamsieve.cli", "serve", "--port", "0")
FLAGS = (
    "--dialect",
    "vllm",
    "--reasoning-parser",
    "qwen3",
    "--tool-parser",
    "hermes",
    "--tool-strict-level",
    "function",
)


class App(Vllm):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await super().__call__(scope, receive, send)


def test_a_required_call_streamed() -> None:
    upstream = App("Hm.</think>The tide is high.")
    with (
        loopback(upstream) as url,
        subprocess.Popen([*SERVE, "--upstream", f"{url}/v1", *FLAGS], stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        found = re.search(r" on (http://\S+)/v1, ", process.stderr.readline())
        assert found
        with openai.OpenAI(base_url=f"{found[1]}/v1", api_key="k", max_retries=0) as client:
            asked: Any = {"model": "m", "messages": [], "tools": TOOLS, "tool_choice": "required"}
            with client.chat.completions.stream(**asked) as events:
                choice = events.get_final_completion().choices[0]
            client.chat.completions.create(model="m", messages=[], tools=TOOLS)
        process.terminate()
    assert choice.message.reasoning == "Hm."
    assert {call.function.name for call in choice.message.tool_calls} == {"ping"}
    tags = [json.loads(body["structured_outputs"]["structural_tag"]) for body in upstream.asked]
    assert [tag["type"] for tag in tags] == ["structural_tag"] * 2  # the second is of the strict level
