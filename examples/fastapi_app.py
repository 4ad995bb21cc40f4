"""A FastAPI application whose own route writes raw model text; the middleware sorts it.

pip install fastapi
uvicorn fastapi_app:app --app-dir examples
"""

import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

from fastapi import Body, FastAPI
from fastapi.responses import JSONResponse, Response, StreamingResponse

from streamsieve import SieveMiddleware

app = FastAPI()
app.add_middleware(SieveMiddleware, reasoning_parser="qwen3", tool_parser="hermes")


async def model_text() -> AsyncIterator[str]:
    """Your model: raw text, piece by piece, markers and all."""
    raw = (
        "<think>\nThe tide table knows.\n</think>\n\nOne moment.\n"
        '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Brest"}}\n</tool_call><|im_end|>'
    )
    for piece in pieces(raw, 6):
        yield piece


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


@app.post("/v1/chat/completions")
async def complete(body: dict[str, Any] = Body()) -> Response:  # noqa: B008  (FastAPI's way)
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": body["model"]}
    if body.get("stream"):
        return StreamingResponse(stream(head), media_type="text/event-stream")
    message = {"role": "assistant", "content": "".join([piece async for piece in model_text()])}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return JSONResponse({**head, "object": "chat.completion", "choices": [choice]})


async def stream(head: dict[str, Any]) -> AsyncIterator[str]:
    def event(delta: dict[str, str], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"

    yield event({"role": "assistant", "content": ""})
    async for piece in model_text():
        yield event({"content": piece})
    yield event({}, "stop")
    yield "data: [DONE]\n\n"
