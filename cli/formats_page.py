"""docs/formats.md, made of the formats themselves: `streamsieve list --markdown`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping

from streamsieve.cli import format_trials
from streamsieve.cli.format_markers import code, meanings
from streamsieve.cli.format_trials import Cut, Trial
from streamsieve.parsers import registry
from streamsieve.parsers.errors import ConfigurationError, Inexpressible
from streamsieve.parsers.format import Format
from streamsieve.parsers.formats import response_template
from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.parsers.results import Message

INTRODUCTION = """\
# The formats

Made by `make formats` of the formats themselves; do not edit. A test compares it with them.

A name chooses the format for one half of a reply, or for both: `--tool-parser` for its calls, `--reasoning-parser`
for its thinking. Two names of different formats go together, but where a format frames the whole reply in messages.

What holds for all of them ([contract.md](contract.md)): text of the reasoning and of the answer leaves in the
delta it came in, only white space and what may be the beginning of a marker waits. Calls are parsed where the request
has tools. A call's name leaves once the call is certain; `deliver="complete"` holds the whole call. Values between
tags follow the tool's schema: where it says that a value is a string, it is never read as anything else.

Each example was written by the format's own `render` and read back (`hf` and `minimax_m2_append_think` read more than
they can write: theirs are written by hand); each reply that is cut ended with the finish reason `length`. In what is
shown in one line, line breaks are written `\\n`.

"structural tag" says whether generation can be bound to a format: to calls of the request's tools, with arguments by
their schemas, and to answers by a schema ([architecture.md](architecture.md#one-value-three-ways)).
"""
_STARTS = {
    "open": "a reply starts in it, the opener may be absent",
    "unless answered": "a reply starts in it, unless a marker of the answer or of a call comes first",
    "marked": "where the opener starts the reply",
    "anywhere": "from the first opener before any call",
    "restored": "not split off: it stays in the content, with the opener that the prompt ended in before it",
}
_SHOWN = 60
_TEMPLATE: Mapping[str, object] = {
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>", "content": "text"},
        "content": {"close": "<|im_end|>", "content": "text"},
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "content": "json",
            "repeats": True,
            "transform": {
                "type": "function",
                "function": {"name": "{content.name}", "arguments": "{content.arguments}"},
            },
        },
    }
}
_TEMPLATE_BLOCK = f"```json\n{json.dumps(_TEMPLATE, indent=2)}\n```"


def built_in() -> Iterator[tuple[Format, str]]:
    """Every format that comes with streamsieve, and what its module says of the models."""
    for about, family in registry.families():
        yield from ((format, about) for format in family)
    hf = response_template.templated(response_template.HF, _TEMPLATE, "tool")
    if hf is not None:
        yield hf, f"{inspect.getdoc(response_template)}\n\nThe example is read by this one:\n\n{_TEMPLATE_BLOCK}"


def page(formats: Iterable[tuple[Format, str]]) -> str:
    """The page about these formats; with each comes what it says about its models."""
    entries = sorted(formats, key=lambda entry: entry[0].name)
    sections = ("\n".join(_section(format, about)) for format, about in entries)
    return "\n".join([INTRODUCTION, *_index([format for format, _ in entries]), "", *sections])


def _index(formats: list[Format]) -> Iterator[str]:
    """A table of all names."""
    kinds = [{name: format for format in formats for name in format.tool_names}]
    kinds.append({name: format for format in formats for name in format.reasoning_names})
    tool, reasoning = kinds
    yield f"{len(tool)} tool parsers and {len(reasoning)} reasoning parsers, names that mean the same counted each:"
    yield ""
    yield "| name | `--tool-parser` | `--reasoning-parser` |"
    yield "|---|---|---|"
    for name in sorted(tool | reasoning):
        cells = (f"[{kind[name].name}](#{kind[name].name})" if name in kind else "" for kind in kinds)
        yield f"| `{name}` | {' | '.join(cells)} |"


def _section(format: Format, about: str) -> Iterator[str]:
    yield f"## {format.name}"
    yield ""
    if about:
        yield about
        yield ""
    yield f"- tool parser: {_names(format.tool_names)}"
    yield f"- reasoning parser: {_names(format.reasoning_names)}"
    if format.reasoning:
        yield f"- thinking: {_STARTS[format.reasoning.starts]}"
        yield f"- thinking switch: {_switch(format.reasoning)}"
    if format.tool_names:
        yield f"- structural tag: {_structural_tag(format)}"
    for meaning, markers in meanings(format):
        yield f"- {meaning}: {markers}"
    try:
        trial = format_trials.attempt(format)
    except (Inexpressible, ConfigurationError) as error:
        yield f"- no example: {error}"
    else:
        yield from _trial(trial)
    yield ""


def _structural_tag(format: Format) -> str:
    """Whether a structural tag can make a model obey the format, and what else stands in its way."""
    try:
        format_trials.structural_tag(format)
    except Inexpressible as error:
        return f"none: {error}"
    return "yes"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _switch(span: ReasoningSpan) -> str:
    """How `chat_template_kwargs` switch thinking."""
    switch = span.switch
    said = [f"`{key}` true or false" for key in switch.keys]
    if switch.level:
        said.append(f"`{switch.level[0]}`, off by {json.dumps(switch.level[1])}")
    if span.levels:
        said.append(f"`{span.levels[0]}` for its markers: {', '.join(map(json.dumps, span.levels[1]))}")
    if not switch.keys and not switch.level:
        return "; ".join(["none that streamsieve looks at", *said])
    off = "text" if span.switched_off == "text" else "read all the same"
    return f"{'; '.join(said)}; {'on' if switch.default else 'off'} by default; off, think tags are {off}"


def _trial(trial: Trial) -> Iterator[str]:
    yield from ("", "````text", trial.raw.strip("\n"), "````", "")
    for tray in _trays(trial.message):
        yield f"- {tray}"
    if trial.first_sign:
        yield f"- the call's name leaves behind {code(_end(trial.first_sign))}"
    if trial.streamed:
        yield f"- arguments: {_streamed(trial)}"
    yield from map(_cut, trial.cuts)


def _streamed(trial: Trial) -> str:
    at_once = [kind for kind, streams in trial.streamed.items() if streams]
    later = [kind for kind, streams in trial.streamed.items() if not streams]
    said = [f"{_listed(at_once)} leave as they come"] if at_once else []
    return ", ".join([*said, *([f"{_listed(later)} when they are complete"] if later else [])])


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _cut(cut: Cut) -> str:
    return f"- cut {cut.where}: {_last(cut.left)}"


def _trays(message: Message) -> Iterator[str]:
    """What came out, tray by tray."""
    for name, text in (("reasoning", message.reasoning), ("content", message.content)):
        if text is not None:
            yield f"{name} {code(text)}"
    for call in message.tool_calls:
        yield f"call `{call.name}` with {code(call.arguments)}"


def _last(message: Message) -> str:
    """The tray that a cut was in: the last that anything came to."""
    if message.tool_calls:
        call = message.tool_calls[-1]
        return f"the call `{call.name}` with {code(call.arguments) if call.arguments else 'no argument yet'}"
    tray, text = ("content", message.content) if message.content is not None else ("reasoning", message.reasoning)
    return f"{tray} {code(_end(text or ''))}"


def _end(text: str) -> str:
    return text if len(text) <= _SHOWN else f"…{text[-_SHOWN:]}"
