"""instructor: calls as pydantic models; several at once when whole, one that fills up when streamed."""

from __future__ import annotations

from collections.abc import Iterable

import instructor
from openai import OpenAI
from openai.types.chat import ChatCompletion
from pydantic import BaseModel
from turns import ASKED, Turn, drive, turn


class get_tide(BaseModel):
    """The tides of a port."""

    port: str
    days: int


class list_ports(BaseModel):
    """The ports that have tides."""


def whole(base_url: str, model: str) -> Turn:
    openai = OpenAI(base_url=base_url, api_key="none")
    client = instructor.from_openai(openai, mode=instructor.Mode.PARALLEL_TOOLS)
    completions: list[ChatCompletion] = []
    client.on("completion:response", completions.append)
    wanted = Iterable[get_tide | list_ports]
    found = client.create(model=model, messages=ASKED, response_model=wanted)
    choice = completions[0].choices[0]
    reasoning = getattr(choice.message, "reasoning", None) or getattr(choice.message, "reasoning_content", None)
    return turn(
        reasoning=reasoning,
        content=choice.message.content,
        calls=_calls(found),
        finish_reason=choice.finish_reason,
        then=None,
    )


def streamed(base_url: str, model: str) -> Turn:
    openai = OpenAI(base_url=base_url, api_key="none")
    client = instructor.from_openai(openai)
    wanted = list_ports if model == "empty_arguments" else get_tide
    *_, found = client.create_partial(model=model, messages=ASKED, response_model=wanted)
    return turn(reasoning=None, content=None, calls=_calls([found]), finish_reason=None, then=None)


def _calls(found: Iterable[BaseModel]) -> list[tuple[str, object]]:
    return [(type(model).__name__.removeprefix("Partial"), model.model_dump()) for model in found]


drive(whole, streamed)
