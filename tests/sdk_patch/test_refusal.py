"""A request that asks for what the format does not have is the caller's error, and nobody is asked."""

from __future__ import annotations

import openai
import pytest

from streamsieve import wrap

ASKED = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "extra_body": {"chat_template_kwargs": {"reasoning_effort": "endless"}},
}
NOWHERE = {"base_url": "http://127.0.0.1:9/v1", "api_key": "none", "max_retries": 0}


def test_synchronous_client():
    with (
        wrap(openai.OpenAI(**NOWHERE), reasoning_parser="k2_horizon") as client,
        pytest.raises(openai.BadRequestError, match="reasoning_effort: unknown name 'endless'"),
    ):
        client.chat.completions.create(**ASKED)


async def test_asynchronous_client():
    async with wrap(openai.AsyncOpenAI(**NOWHERE), reasoning_parser="k2_horizon") as client:
        with pytest.raises(openai.BadRequestError, match="reasoning_effort: unknown name 'endless'"):
            await client.chat.completions.create(**ASKED, stream=True)
