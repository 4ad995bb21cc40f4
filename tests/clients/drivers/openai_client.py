"""openai, 3 and 2: a whole completion, and the `stream` helper."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI
from turns import ANSWERED, ASKED, TOOLS, Turn, drive, turn


def whole(base_url: str, model: str) -> Turn:
    client = OpenAI(base_url=base_url, api_key="none")
    completion = client.chat.completions.create(model=model, messages=ASKED, tools=TOOLS)
    return _turn(client, completion)


def streamed(base_url: str, model: str) -> Turn:
    client = OpenAI(base_url=base_url, api_key="none")
    with client.chat.completions.stream(model=model, messages=ASKED, tools=TOOLS) as stream:
        completion = stream.get_final_completion()
    return _turn(client, completion)


def _turn(client: OpenAI, completion: Any) -> Turn:
    choice = completion.choices[0]
    message = choice.message
    reasoning = getattr(message, "reasoning", None) or getattr(message, "reasoning_content", None)
    calls = message.tool_calls or []
    then = None
    if calls:
        history = [
            *ASKED,
            message.model_dump(exclude_none=True),
            *({"role": "tool", "tool_call_id": call.id, "content": ANSWERED} for call in calls),
        ]
        again = client.chat.completions.create(model=completion.model, messages=history, tools=TOOLS)
        then = again.choices[0].message.content
    return turn(
        reasoning=reasoning,
        content=message.content,
        calls=[(call.function.name, json.loads(call.function.arguments)) for call in calls],
        finish_reason=choice.finish_reason,
        then=then,
    )


drive(whole, streamed)
