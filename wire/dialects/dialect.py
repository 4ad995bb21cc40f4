"""What there is to know of an upstream to ask it for raw text and for constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Fields = Mapping[str, object]
NO_FIELDS: Fields = MappingProxyType({})


def _no_fields() -> Fields:  # a mapping proxy is unhashable before Python 3.12
    return NO_FIELDS


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One kind of upstream's words, for `POST /v1/chat/completions`.

    `sources`: the documentation that the rest is from.
    `raw_text`: fields with which the text arrives as the model wrote it; they hold whatever the client says.
    `end_tokens`: fields that leave the token in the text that ended it. Where they are given the client's own
    stop strings would stay in the text too, so they are only for requests that have none.
    `token_ids`: fields that ask for the ids of the text. `ids_in_streams`: whether a streamed reply may have them too.
    `calls`: whether it can be kept from sorting calls out of the text ("raw"), or does so always ("sorted"),
    or does so and enforces `tool_choice` in doing it ("enforced").
    `thinking`: whether it leaves thinking in the text ("raw"), or sorts it out itself, so that a reply's text
    starts with the answer ("sorted").
    `tool_choice`: the one with which tools reach the chat template and the upstream neither parses nor
    refuses; for "raw".
    `tag`, `schema`: where a structural tag and a JSON schema go; None where it takes none.
    `constraints`: its own fields for constraints, beside which none of ours can stand.
    `binds`: what a constraint holds for, the whole reply or only the answer behind the thinking.
    `completions`: what `POST /v1/completions` makes of a prompt: it goes on with it, held to these constraints
    too ("constrained") or to none ("free"), or puts it through the chat template once more ("templated").
    `thinking_off`: how thinking is switched off for a request, by the template's own switch or by fields;
    needed where a schema binds the whole reply.
    `reasoning_field`: the field of earlier messages that the templates read; None where it reads none.
    `effort_switches`: the `chat_template_kwargs` that it makes of a request's `reasoning_effort`.
    `continuing`: fields that it wants beside `continue_final_message`.
    `continues_unasked`: whether it goes on with a last message that is the assistant's without that field too.
    """

    sources: tuple[str, ...]
    raw_text: Fields = field(default_factory=_no_fields)
    end_tokens: Fields = field(default_factory=_no_fields)
    token_ids: Fields = field(default_factory=_no_fields)
    ids_in_streams: bool = True
    calls: Literal["raw", "sorted", "enforced"] = "raw"
    thinking: Literal["raw", "sorted"] = "raw"
    tool_choice: Literal["none", "auto"] | None = None
    tag: Literal["structured_outputs", "response_format"] | None = None
    schema: Literal["structured_outputs", "response_format", "json_schema"] | None = None
    constraints: tuple[str, ...] = ()
    binds: Literal["the reply", "the answer"] = "the reply"
    completions: Literal["constrained", "free", "templated"] = "free"
    thinking_off: Literal["template"] | Fields = "template"
    reasoning_field: Literal["reasoning", "reasoning_content"] | None = None
    effort_switches: tuple[str, ...] = ()
    continuing: Fields = field(default_factory=_no_fields)
    continues_unasked: bool = False
