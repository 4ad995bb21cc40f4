"""langchain-deepseek: `ChatDeepSeek`, which shows the reasoning that `ChatOpenAI` drops."""

from __future__ import annotations

from langchain_chat import invoke, stream
from langchain_deepseek import ChatDeepSeek
from turns import Turn, drive


def whole(base_url: str, model: str) -> Turn:
    chat = ChatDeepSeek(model=model, base_url=base_url, api_key="none")
    return invoke(chat)


def streamed(base_url: str, model: str) -> Turn:
    chat = ChatDeepSeek(model=model, base_url=base_url, api_key="none")
    return stream(chat)


drive(whole, streamed)
