"""The asynchronous client, wrapped, with two replies streamed at once.

streamsieve serve &
python examples/wrapped_async_client.py http://127.0.0.1:8000/v1
"""

import asyncio
import sys

from openai import AsyncOpenAI

from streamsieve import wrap

base_url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/v1"
messages = [{"role": "user", "content": "How are the tides in Brest?"}]


async def ask(client: AsyncOpenAI, name: str) -> None:
    reasoning = content = ""
    stream = await client.chat.completions.create(model="hermes", messages=messages, stream=True)
    async for chunk in stream:
        delta = chunk.choices[0].delta
        reasoning += getattr(delta, "reasoning", None) or ""
        content += delta.content or ""
    print(f"{name}: {reasoning!r} then {content!r}")


async def main() -> None:
    async with wrap(AsyncOpenAI(base_url=base_url, api_key="none"), reasoning_parser="qwen3") as client:
        await asyncio.gather(ask(client, "first"), ask(client, "second"))


asyncio.run(main())
