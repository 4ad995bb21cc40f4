"""vLLM's engine in this process, its raw text sorted by the middleware.

pip install vllm
MODEL=Qwen/Qwen3-8B uvicorn source_vllm:app --factory --app-dir examples
"""

import os
import uuid
from collections.abc import AsyncIterator

from vllm import SamplingParams
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

from streamsieve import SieveMiddleware
from streamsieve.backends.callable_source import Chat, Yielded, callable_source
from streamsieve.backends.reply import Piece, Usage


def app() -> SieveMiddleware:
    model = os.environ["MODEL"]
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=model))

    async def generate(chat: Chat) -> AsyncIterator[Yielded]:
        tokenizer = await engine.get_tokenizer()
        prompt = tokenizer.apply_chat_template(
            chat.messages,
            tools=chat.body.get("tools"),
            add_generation_prompt=True,
            tokenize=False,
            **chat.body.get("chat_template_kwargs", {}),
        )
        chat.prompt_ended_in(prompt[-60:])
        sampling = SamplingParams(
            temperature=chat.body.get("temperature", 1.0),
            max_tokens=chat.body.get("max_tokens", 1024),
            stop=chat.body.get("stop"),
            skip_special_tokens=False,  # the parsers look for them
            output_kind=RequestOutputKind.DELTA,
        )
        written = 0
        async for output in engine.generate(prompt, sampling, request_id=uuid.uuid4().hex):
            part = output.outputs[0]
            written += len(part.token_ids)
            yield Piece(text=part.text, token_ids=part.token_ids, finish_reason=part.finish_reason)
        yield Usage(prompt=len(output.prompt_token_ids), completion=written)

    return SieveMiddleware(callable_source(generate, model=model), reasoning_parser="qwen3", tool_parser="hermes")
