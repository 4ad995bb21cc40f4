"""`auto`: which parsers read a model's replies, found by rules and proved on its chat template.

The rules (`streamsieve.parsers.rules`) only guess. A guess counts once turns that the template itself
writes have come back as they went in; what a user names is held to the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from streamsieve.backends.model_files import ModelFiles, read_model
from streamsieve.backends.template_check import (
    Fit,
    Misfit,
    Wanted,
    check,
    knows_thinking,
    writes_calls,
    writes_thinking,
)
from streamsieve.backends.template_turns import Portrait, portray
from streamsieve.parsers import registry, rules
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import Format
from streamsieve.parsers.reasoning import ReasoningSpan
from streamsieve.parsers.rules import AUTO, Choice
from streamsieve.wire.options import Options
from streamsieve.wire.settings import Settings

_LONGEST = 2000
"""Characters of a reply in an error."""

FoundBy = Literal["name", "template", "tokens", "hand"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The parsers for a model, and how that is known.

    `portrait` and `fit` are None where there is no template to ask, so that nothing was proved.
    """

    model: ModelFiles
    choice: Choice
    found_by: FoundBy
    portrait: Portrait | None = None
    fit: Fit | None = None


class NothingFits(ConfigurationError):
    """No parser was found, or what the template writes does not come out as it went in.

    The message shows what was rendered, what came back, and what to set by hand.
    """


def detect(
    source: str,
    *,
    tool_parser: str | None = AUTO,
    reasoning_parser: str | None = AUTO,
    prompt_tail: str | None = None,
) -> Detection:
    """The parsers for the model at `source`, a path or a name (`read_model`).

    A name in the place of `auto` is checked and kept; None leaves that tray alone. Raises NothingFits,
    and ConfigurationError where the model cannot be read.
    """
    asked = Choice(_none(tool_parser), _none(reasoning_parser))
    model = read_model(source)
    if model.template is None:
        return _without_template(model, asked)
    portrait = portray(model)
    wanted = Wanted(reasoning=asked.reasoning is not None, calls=asked.tool is not None, prompt_tail=prompt_tail)
    if AUTO not in asked:
        return _proved(model, portrait, asked, wanted)
    return _chosen(model, portrait, asked, wanted)


def settings_for(source: str, options: Options) -> Settings:
    """Settings for the model at `source`, with what `detect` makes of the parsers in `options`. Raises as it does."""
    found = detect(
        source,
        tool_parser=options.get("tool_parser"),
        reasoning_parser=options.get("reasoning_parser"),
        prompt_tail=options.get("prompt_tail"),
    )
    chosen = options.copy()
    chosen["tool_parser"], chosen["reasoning_parser"] = found.choice
    chosen["response_template"] = options.get("response_template") or found.model.response_template
    return Settings(**chosen)


def _none(name: str | None) -> str | None:
    return None if name == "none" else name


def _without_template(model: ModelFiles, asked: Choice) -> Detection:
    """By tokens, then by name. Names given by hand stand as they are: there is nothing to check them on."""
    _selected(model, Choice(*(None if name == AUTO else name for name in asked)))
    if AUTO not in asked:
        return Detection(model=model, choice=asked, found_by="hand")
    if by_tokens := rules.by_tokens(model.tokens):
        return Detection(model=model, choice=_filled(asked, by_tokens), found_by="tokens")
    for name in model.names:
        if by_name := rules.by_name(name):
            return Detection(model=model, choice=_filled(asked, by_name), found_by="name")
    raise NothingFits(
        f"model: {model.source} has no chat template, and no rule knows it by its name ({', '.join(model.names)}) or "
        "its tokens. Set tool_parser and reasoning_parser by hand (streamsieve list has the names)"
    )


def _filled(asked: Choice, found: Choice) -> Choice:
    tool, reasoning = (theirs if ours == AUTO else ours for ours, theirs in zip(asked, found, strict=True))
    return Choice(tool, reasoning)


def _proved(model: ModelFiles, portrait: Portrait, asked: Choice, wanted: Wanted) -> Detection:
    """What was named by hand."""
    format = _selected(model, asked)
    if format is None:
        return Detection(model=model, choice=asked, found_by="hand", portrait=portrait)
    template = model.template or ""
    if wanted.calls and not writes_calls(portrait) and not portrait.takes_tools:
        raise NothingFits(
            f"tool_parser: the chat template of {model.source} shows the model no tools and writes no calls, so "
            f"{asked.tool!r} has nothing to read{_because(portrait)}"
        )
    if format.reasoning and not knows_thinking(format.reasoning, portrait, template):
        raise NothingFits(
            f"reasoning_parser: the chat template of {model.source} has none of the markers of {asked.reasoning!r} "
            f"({', '.join(format.reasoning.openers + format.reasoning.closers)})"
        )
    outcome = check(format, portrait, template, wanted)
    if isinstance(outcome, Misfit):
        raise NothingFits(_contradiction(model, asked, outcome) + _advice(model, portrait, wanted, outcome))
    return Detection(model=model, choice=asked, found_by="hand", portrait=portrait, fit=outcome)


def _chosen(model: ModelFiles, portrait: Portrait, asked: Choice, wanted: Wanted) -> Detection:
    """The first guess that fits to the last line break, else the first that fits."""
    template = model.template or ""
    fitting: list[Detection] = []
    first: tuple[Choice, Misfit] | None = None
    for found_by, guess in [*_own(asked), *_guesses(model, portrait)]:
        choice = _filled(asked, guess)
        if wanted.reasoning and choice.reasoning is None and writes_thinking(portrait):
            continue
        if format := _known(model, choice):
            outcome = check(format, portrait, template, wanted)
        elif any(choice):
            continue
        else:
            outcome = Fit(exact=True, notes=("the template writes no thinking",))
        if isinstance(outcome, Misfit):
            first = first or (choice, outcome)
            continue
        fitting.append(Detection(model=model, choice=choice, found_by=found_by, portrait=portrait, fit=outcome))
        if outcome.exact:
            return fitting[-1]
    if fitting:
        return fitting[0]
    if first:
        raise NothingFits("auto: " + _contradiction(model, *first) + _advice(model, portrait, wanted, first[1]))
    calls = "tool calls that no rule knows" if writes_calls(portrait) else f"no tool calls{_because(portrait)}"
    thinking = "thinking that no rule knows" if writes_thinking(portrait) else "no thinking"
    raise NothingFits(
        f"auto: nothing found in the chat template of {model.source}: it writes {calls} and {thinking}. "
        + _advice(model, portrait, wanted, None)
    )


def _own(asked: Choice) -> Iterator[tuple[FoundBy, Choice]]:
    """What goes with a parser that was named by hand: the other half of its own family."""
    if asked.tool not in (AUTO, None):
        yield "hand", Choice(None, next(iter(registry.named("tool", asked.tool).reasoning_names), None))
    if asked.reasoning not in (AUTO, None):
        yield "hand", Choice(next(iter(registry.named("reasoning", asked.reasoning).tool_names), None), None)


def _guesses(model: ModelFiles, portrait: Portrait) -> Iterator[tuple[FoundBy, Choice]]:
    """What the rules say, without thinking and calls of which the template shows nothing; each pair once."""
    found: list[tuple[FoundBy, Choice]] = [("name", choice) for choice in map(rules.by_name, model.names) if choice]
    found += [("template", choice) for choice in rules.by_template(model.template or "")]
    if model.response_template is not None:
        found += [("template", Choice("hf", "hf")), ("template", Choice("hf", None))]
    calls, seen = writes_calls(portrait), set[Choice]()
    for found_by, (tool, reasoning) in found:
        # A template may show tools and not write calls back; then only the name tells.
        choice = Choice(tool if calls or (found_by == "name" and portrait.takes_tools) else None, reasoning)
        reader = _known(model, Choice(None, reasoning))
        if reader and reader.reasoning and not _shows(reader.reasoning, found_by, model, portrait):
            choice = Choice(choice.tool, None)
        if choice not in seen and any(choice):
            seen.add(choice)
            yield found_by, choice


def _shows(span: ReasoningSpan, found_by: FoundBy, model: ModelFiles, portrait: Portrait) -> bool:
    """Whether the template shows thinking of this kind.

    That it only speaks of it is enough for a model that is known to think by its name, and for thinking
    that always has its opener; else it could be a model that never thinks, and all it says would be reasoning.
    """
    if not knows_thinking(span, portrait, model.template or ""):
        return False
    return writes_thinking(portrait) or found_by == "name" or span.starts == "marked"


def _selected(model: ModelFiles, choice: Choice) -> Format | None:
    return registry.select(
        tool_parser=choice.tool, reasoning_parser=choice.reasoning, response_template=model.response_template
    )


def _known(model: ModelFiles, choice: Choice) -> Format | None:
    """The format of a guess; None for parsers that are not installed, or are none of a pair."""
    try:
        return _selected(model, choice)
    except ConfigurationError:
        return None


def _because(portrait: Portrait) -> str:
    return f" (it refuses them: {portrait.refusal})" if portrait.refusal else ""


def _contradiction(model: ModelFiles, choice: Choice, misfit: Misfit) -> str:
    thinking = {"default": "thinking not set", "on": "thinking on", "off": "thinking off"}[misfit.turn.mode]
    return (
        f"{_options(choice)} would misread {model.source} ({thinking}).\n"
        f"  put into the chat template: {misfit.put_in}\n"
        f"  rendered: {misfit.reply[:_LONGEST]!r}\n"
        f"  came back: {str(misfit.came_out)[:_LONGEST]}\n  "
    )


def _advice(model: ModelFiles, portrait: Portrait, wanted: Wanted, misfit: Misfit | None) -> str:
    """What to set by hand: parsers that pass the check, and a prompt tail where that would help."""
    wanted = replace(
        wanted,
        calls=wanted.calls and writes_calls(portrait),
        reasoning=wanted.reasoning and writes_thinking(portrait),
    )
    if not (wanted.calls or wanted.reasoning):
        return "Its replies need no parser; where that is wrong, set tool_parser and reasoning_parser by hand"
    fits = [(choice, fit) for choice in dict.fromkeys(_pairs(wanted)) if (fit := _fit(model, portrait, wanted, choice))]
    fits.sort(key=lambda pair: not pair[1].exact)
    ways = [_options(choice) for choice, _ in fits[:3]]
    if misfit and misfit.fits_with_prompt and misfit.turn.mode == "default":
        ways.append(f"prompt_tail={portrait.tails['default']!r}, which holds for every request")
    if ways:
        return f"What reads it, to set by hand: {'; or '.join(ways)}"
    return "No parser here reads it; set the parsers by hand where you know better (streamsieve list has the names)"


def _options(choice: Choice) -> str:
    named = zip(("tool_parser", "reasoning_parser"), choice, strict=True)
    return ", ".join(f"{option}={name!r}" for option, name in named if name)


def _pairs(wanted: Wanted) -> Iterator[Choice]:
    """Every parser of ours, with its own thinking, that of others, and none."""
    for format in registry.built_in():
        tool = format.tool_names[0] if format.tool_names and wanted.calls else None
        own = format.reasoning_names[:1]
        for reasoning in (*own, *(reader for _, reader in rules.THINKERS), None) if wanted.reasoning else (None,):
            if (tool or not wanted.calls) and (tool or reasoning):
                yield Choice(tool, reasoning)


def _fit(model: ModelFiles, portrait: Portrait, wanted: Wanted, choice: Choice) -> Fit | None:
    format, template = _known(model, choice), model.template or ""
    if format is None or (format.reasoning and not knows_thinking(format.reasoning, portrait, template)):
        return None
    outcome = check(format, portrait, template, wanted)
    return outcome if isinstance(outcome, Fit) else None
