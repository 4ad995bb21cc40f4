"""litellm: `completion`, whole and streamed, with the provider `openai`."""

from __future__ import annotations

import json

import litellm
from turns import ANSWERED, ASKED, TOOLS, Turn, drive, turn

litellm.suppress_debug_info = True  # or it writes hints where our JSON goes


def whole(base_url: str, model: str) -> Turn:
    asking = {"model": f"openai/{model}", "base_url": base_url, "api_key": "none", "tools": TOOLS}
    return _turn(asking, litellm.completion(messages=ASKED, **asking))


def streamed(base_url: str, model: str) -> Turn:
    asking = {"model": f"openai/{model}", "base_url": base_url, "api_key": "none", "tools": TOOLS}
    chunks = list(litellm.completion(messages=ASKED, stream=True, **asking))
    return _turn(asking, litellm.stream_chunk_builder(chunks))


def _turn(asking: dict[str, object], response) -> Turn:
    choice = response.choices[0]
    message = choice.message
    calls = message.tool_calls or []
    answers = [{"role": "tool", "tool_call_id": call.id, "content": ANSWERED} for call in calls]
    then = litellm.completion(messages=[*ASKED, message, *answers], **asking) if calls else None
    return turn(
        reasoning=getattr(message, "reasoning_content", None),
        content=message.content,
        calls=[(call.function.name, json.loads(call.function.arguments)) for call in calls],
        finish_reason=choice.finish_reason,
        then=then and then.choices[0].message.content,
    )


drive(whole, streamed)
