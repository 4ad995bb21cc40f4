"""mlx-lm in this process (Apple silicon), its raw text sorted by the middleware.

pip install mlx-lm
MODEL=mlx-community/Qwen3-8B-4bit uvicorn source_mlx:app --factory --app-dir examples
"""

import os
from collections.abc import AsyncIterator

from mlx_lm import load, stream_generate
from mlx_lm.sample_utils import make_sampler

from streamsieve import SieveMiddleware
from streamsieve.backends.callable_source import Chat, Yielded, callable_source
from streamsieve.backends.one_thread import OneThread
from streamsieve.backends.reply import Piece, Usage


def app() -> SieveMiddleware:
    name = os.environ["MODEL"]
    model, tokenizer = load(name)
    thread = OneThread()  # MLX's streams belong to the thread that uses them

    async def generate(chat: Chat) -> AsyncIterator[Yielded]:
        prompt = tokenizer.apply_chat_template(
            chat.messages,
            tools=chat.body.get("tools"),
            add_generation_prompt=True,
            **chat.body.get("chat_template_kwargs", {}),
        )
        chat.prompt_ended_in(tokenizer.decode(prompt[-20:]))
        sampler = make_sampler(temp=chat.body.get("temperature", 0.0))
        most = chat.body.get("max_tokens", 1024)
        async for part in thread.iterate(
            lambda: stream_generate(model, tokenizer, prompt, max_tokens=most, sampler=sampler)
        ):
            yield Piece(text=part.text, finish_reason=part.finish_reason)
        yield Usage(prompt=part.prompt_tokens, completion=part.generation_tokens)

    return SieveMiddleware(callable_source(generate, model=name), reasoning_parser="qwen3", tool_parser="hermes")
