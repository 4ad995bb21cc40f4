"""llama.cpp in this process, its raw text sorted by the middleware.

pip install llama-cpp-python
MODEL=/models/Qwen3-8B-Q4_K_M.gguf uvicorn source_llama_cpp:app --factory --app-dir examples
"""

import codecs
import os
from collections.abc import AsyncIterator, Generator, Sequence

from llama_cpp import Llama
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from streamsieve import SieveMiddleware
from streamsieve.backends.callable_source import Chat, Yielded, callable_source
from streamsieve.backends.one_thread import OneThread
from streamsieve.backends.reply import Piece, Usage


def app() -> SieveMiddleware:
    path = os.environ["MODEL"]
    llama = Llama(path, n_ctx=8192, verbose=False)
    template = Jinja2ChatFormatter(
        llama.metadata["tokenizer.chat_template"],
        eos_token=llama.detokenize([llama.token_eos()], special=True).decode(),
        bos_token=llama.detokenize([llama.token_bos()], special=True).decode(),
    )
    thread = OneThread()  # a Llama writes one reply at a time

    def write(prompt: Sequence[int], most: int, temperature: float) -> Generator[tuple[str, list[int]], None, None]:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        waiting: list[int] = []  # tokens of a character that is not whole yet
        for count, token in enumerate(llama.generate(prompt, temp=temperature)):
            if token == llama.token_eos() or count == most:
                return
            waiting.append(token)
            if text := decode(llama.detokenize([token], special=True)):
                yield text, waiting
                waiting = []

    async def generate(chat: Chat) -> AsyncIterator[Yielded]:
        text = template(messages=chat.messages, tools=chat.body.get("tools")).prompt
        chat.prompt_ended_in(text[-60:])
        prompt = llama.tokenize(text.encode(), add_bos=False, special=True)
        most = chat.body.get("max_tokens", 1024)
        written = 0
        async for piece in thread.iterate(lambda: write(prompt, most, chat.body.get("temperature", 0.8))):
            written += len(piece[1])
            yield piece
        yield Piece(finish_reason="length" if written >= most else "stop")
        yield Usage(prompt=len(prompt), completion=written)

    return SieveMiddleware(callable_source(generate, model=path), reasoning_parser="qwen3", tool_parser="hermes")
