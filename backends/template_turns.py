"""What a chat template shows of a model: its prompts, its thinking switch, and how it writes an assistant turn.

The template is given a conversation in which the assistant thinks, says something and makes two calls.
What it writes behind the prompt is, as far as anyone can know without the weights, what the model
writes. Templates differ in what they take (arguments as an object or as text, calls with or without
content beside them, one call or more), so each turn is rendered in every shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from streamsieve.backends.chat_template import Rendered, render
from streamsieve.backends.common_beginning import common_beginning
from streamsieve.backends.model_files import ModelFiles
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.rules import SWITCHES

QUESTION = "How are the tides in Brest?"
REASONING = "Both tools are of use here."
CONTENT = "I look that up."
CALLS: Sequence[tuple[str, Mapping[str, object]]] = (
    ("get_tide", {"port": "Brest", "days": 2}),
    ("post_note", {"title": "Ebb", "body": '\nSail at "four", réveil 3 h.\n'}),
)
"""The second has a string that begins and ends in a line break: some families keep those, others drop one."""

TOOLS: Sequence[Mapping[str, object]] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {
                    key: {"type": "integer" if key == "days" else "string", "description": f"The {key}."}
                    for key in arguments
                },
                "required": [*arguments],
            },
        },
    }
    for (name, arguments), description in zip(CALLS, ("Times of the tides.", "Leave a note."), strict=True)
)

Mode = Literal["default", "on", "off"]
"""How thinking is set in the request: not at all, on, or off."""

REASONING_NAMES = ("reasoning_content", "reasoning", "thinking")
"""The names under which clients send a turn's reasoning, and templates look for it."""

_IDS = (("call00001", "call00002"), ("functions.get_tide:0", "functions.post_note:1"))
"""Nine letters and digits, which all templates but Kimi's take (Mistral's no other), and Kimi's own form."""

_ANSWER = "The answer §"
_BOUNDARY = re.compile(r"[>\]\s]")
_TURN_END = re.compile(r"[<\[\s]")


@dataclass(frozen=True, slots=True)
class Switch:
    """The key of `chat_template_kwargs` that turns thinking on and off, and how."""

    key: str
    on: object
    off: object


@dataclass(frozen=True, slots=True)
class Shape:
    """How a turn is given to the template."""

    calls: int
    content: str | None
    arguments: Literal["object", "text"] = "object"
    ids: tuple[str, ...] = _IDS[0]

    def message(self, *, thinking: bool) -> dict[str, object]:
        """The assistant's message."""
        message: dict[str, object] = {"role": "assistant", "content": self.content}
        if thinking:
            message |= dict.fromkeys(REASONING_NAMES, REASONING)
        if self.calls:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": self._written(arguments)}}
                for id, (name, arguments) in zip(self.ids, CALLS[: self.calls], strict=False)
            ]
        return message

    def _written(self, arguments: Mapping[str, object]) -> object:
        return arguments if self.arguments == "object" else json.dumps(arguments, ensure_ascii=False)


SHAPES = (
    *(Shape(*parts) for parts in product((2, 1), (CONTENT, "", None), ("object", "text"), _IDS)),  # type: ignore[arg-type]
    Shape(0, CONTENT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One assistant turn as the template writes it.

    `prompt`: what the engine would be given, and `kwargs` the request's `chat_template_kwargs`; `reply`:
    what the model would have written, and `end` what ends any turn. `thinks`: whether it was given
    thinking, which some templates leave out of turns that are past (`writes_thinking`).
    """

    mode: Mode
    kwargs: Mapping[str, object]
    shape: Shape
    prompt: str
    reply: str
    end: str
    thinks: bool

    @property
    def writes_thinking(self) -> bool:
        """Whether the thinking stands in the reply."""
        return REASONING in self.reply

    @property
    def is_whole(self) -> bool:
        """Whether the content and all the calls stand in the reply, in this order."""
        parts = (self.shape.content or "", *(name for name, _ in CALLS[: self.shape.calls]))
        places = [self.reply.find(part) for part in parts]
        return -1 not in places and places == sorted(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Portrait:
    """All that a template showed. `tails`: what stands behind the question in the prompt, for each mode.

    `default`: what an unset switch comes to; None where there is no switch. `takes_tools`: whether it
    looks at the request's tools. `refusal`: with what it refused turns with calls, where it writes none.
    """

    switch: Switch | None
    default: Literal["on", "off", "neither"] | None
    tails: Mapping[Mode, str]
    turns: Sequence[Turn]
    takes_tools: bool
    refusal: str


def portray(model: ModelFiles) -> Portrait:
    """Ask the template of `model`, which has one.

    Raises ConfigurationError where it refuses a plain question, or every turn.
    """
    assert model.template is not None
    question = {"role": "user", "content": QUESTION}
    modes = [Switch("", None, None), *(Switch(*switch) for switch in SWITCHES)]
    asked = [
        _variables(model, [question], kwargs, prompt=True)
        for switch in modes
        for kwargs in ({}, {switch.key: switch.on}, {switch.key: switch.off})
    ]
    seen = render(model.template, asked)
    plain, _, _, *switched = seen.results
    if plain.text is None:
        raise ConfigurationError(f"model: the chat template of {model.source} refuses a plain question: {plain.error}")
    prompts: dict[Mode, str] = {"default": plain.text}
    switch = None
    for candidate, on, off in zip(modes[1:], switched[1::3], switched[2::3], strict=True):
        if candidate.key in seen.variables and _switches(candidate, on, off, model.template):
            switch = candidate
            prompts |= {"on": on.text or "", "off": off.text or ""}
            break
    turns, refusal = _turns(model, model.template, question, prompts, switch)
    return Portrait(
        switch=switch,
        default=_default(prompts) if switch else None,
        tails={mode: _tail(prompt) for mode, prompt in prompts.items()},
        turns=turns,
        takes_tools="tools" in seen.variables,
        refusal=refusal,
    )


def _variables(
    model: ModelFiles, messages: Sequence[Mapping[str, object]], kwargs: Mapping[str, object], *, prompt: bool
) -> dict[str, object]:
    tokens = {"bos_token": model.bos_token, "eos_token": model.eos_token}
    fixed = {"messages": messages, "tools": TOOLS, "documents": None, "add_generation_prompt": prompt}
    return {**tokens, **fixed, **{key: value for key, value in kwargs.items() if key}}


def _switches(switch: Switch, on: Rendered, off: Rendered, template: str) -> bool:
    """Whether the two prompts differ, and for a word to be chosen whether the template knows it."""
    word = switch.off
    known = not isinstance(word, str) or f"'{word}'" in template or f'"{word}"' in template
    return known and on.text is not None and off.text is not None and on.text != off.text


def _default(prompts: Mapping[Mode, str]) -> Literal["on", "off", "neither"]:
    for mode in ("on", "off"):
        if prompts["default"] == prompts[mode]:
            return mode
    return "neither"


def _tail(prompt: str) -> str:
    return prompt.rpartition(QUESTION)[2][-200:]


def _turns(
    model: ModelFiles, template: str, question: Mapping[str, object], prompts: Mapping[Mode, str], switch: Switch | None
) -> tuple[list[Turn], str]:
    """Every turn that the template writes, in the order of `SHAPES` within each mode, and why it writes no calls."""
    default = _default(prompts) if switch else "on"
    blanks = [
        Turn(
            mode=mode,
            kwargs={switch.key: switch.on if mode == "on" else switch.off} if switch and mode != "default" else {},
            shape=shape,
            prompt=prompt,
            reply="",
            end="",
            thinks=mode == "on" or (mode == "default" and default != "off"),
        )
        for (mode, prompt), shape in product(prompts.items(), SHAPES)
    ]
    jobs = [
        _variables(model, [question, message], blank.kwargs, prompt=False)
        for blank in blanks
        for message in (blank.shape.message(thinking=blank.thinks), {"role": "assistant", "content": _ANSWER})
    ]
    written = render(template, jobs).results
    pairs = list(zip(blanks, written[::2], written[1::2], strict=True))
    if all(turn.text is None for _, turn, _ in pairs):
        raise ConfigurationError(
            f"model: the chat template of {model.source} refuses every assistant turn: {written[0].error}"
        )
    turns = [
        _written(blank, turn.text, answer.text or "", model.eos_token)
        for blank, turn, answer in pairs
        if turn.text is not None
    ]
    refusal = "" if any(turn.shape.calls and turn.is_whole for turn in turns) else written[0].error
    return turns, refusal


def _written(blank: Turn, conversation: str, answered: str, eos_token: str) -> Turn:
    """The turn out of a conversation that ends in it; `answered` is one that ends in nothing but an answer.

    It ends where the engine stops, at the tokenizer's end token, else where the ends of both begin to be alike.
    """
    reply, end = _behind(blank.prompt, conversation), answered.rpartition(_ANSWER)[2]
    cut = reply.find(eos_token) if eos_token else -1
    if cut < 0:
        cut = len(reply) - common_beginning(reply[::-1], end[::-1])
        while cut < len(reply) and not _TURN_END.match(reply[cut]):
            cut += 1
    return replace(blank, reply=reply[:cut], end=reply[cut:])


def _behind(prompt: str, conversation: str) -> str:
    """What stands in the conversation behind the prompt.

    Where they part before the prompt's end (it opens or closes the thinking, and the template leaves that
    out of a turn that is past), it is what stands behind the last boundary that they share, and behind
    what they then have in common all the same.
    """
    common = common_beginning(prompt, conversation)
    while common < len(prompt) and common and not _BOUNDARY.match(conversation[common - 1]):
        common -= 1
    prompted, rest = prompt[common:], conversation[common:]
    again = next((size for size in range(len(prompted), 0, -1) if prompted.endswith(rest[:size])), 0)
    return rest[again:]
