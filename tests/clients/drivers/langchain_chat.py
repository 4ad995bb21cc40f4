"""langchain-openai: `ChatOpenAI`, its `invoke` and `stream`."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from turns import ANSWERED, PROMPT, TOOLS, Turn, drive, turn

ASKED: list[BaseMessage] = [HumanMessage(PROMPT)]


def whole(base_url: str, model: str) -> Turn:
    chat = ChatOpenAI(model=model, base_url=base_url, api_key="none")
    return invoke(chat)


def streamed(base_url: str, model: str) -> Turn:
    chat = ChatOpenAI(model=model, base_url=base_url, api_key="none")
    return stream(chat)


def invoke(model: BaseChatModel) -> Turn:
    chat = model.bind_tools(TOOLS)
    message = chat.invoke(ASKED)
    return _turn(chat, message)


def stream(model: BaseChatModel) -> Turn:
    chat = model.bind_tools(TOOLS)
    first, *rest = chat.stream(ASKED)
    message = sum(rest, first)
    return _turn(chat, message)


def _turn(chat: Runnable, message: AIMessage) -> Turn:
    answers = [ToolMessage(ANSWERED, tool_call_id=call["id"]) for call in message.tool_calls]
    return turn(
        reasoning="".join(block["reasoning"] for block in message.content_blocks if block["type"] == "reasoning"),
        content=message.text,
        calls=[(call["name"], call["args"]) for call in message.tool_calls],
        finish_reason=message.response_metadata["finish_reason"],
        then=chat.invoke([*ASKED, message, *answers]).text if answers else None,
    )


if __name__ == "__main__":
    drive(whole, streamed)
