"""What one installation of streamsieve does with the replies that pass it."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar, get_args

from streamsieve.parsers import registry, rules
from streamsieve.parsers.chain import Stage
from streamsieve.parsers.errors import ConfigurationError, unknown_choice
from streamsieve.parsers.format import Format
from streamsieve.parsers.messages import OneOfBoth
from streamsieve.parsers.response_template.file import load_template
from streamsieve.parsers.tokens import SpecialTokens
from streamsieve.wire.completions.renderer import Renderer
from streamsieve.wire.dialects import DIALECTS, Upstream
from streamsieve.wire.dialects.dialect import Dialect
from streamsieve.wire.observing.capture import Capture
from streamsieve.wire.observing.observers import Observer, observers
from streamsieve.wire.routing import Models, Route, check_header_parsers, for_headers, for_model, routes

T = TypeVar("T")
ReasoningField = Literal["reasoning", "reasoning_content", "both"]
Deliver = Literal["stream", "complete"]
UnknownTools = Literal["call", "text"]
Responses = Literal["parse", "translate"]
ToolStrictLevel = Literal["auto", "function", "parameter"]
Enforcement = Literal["always", "best_effort"]

_CHOICES: Mapping[str, Sequence[str]] = {
    "reasoning_field": get_args(ReasoningField),
    "deliver": get_args(Deliver),
    "unknown_tools": get_args(UnknownTools),
    "responses": get_args(Responses),
    "tool_strict_level": get_args(ToolStrictLevel),
    "enforcement": get_args(Enforcement),
}
"""The options of which each value has a name."""


@dataclass(frozen=True)
class Settings:
    """Checked when made: what cannot work raises `ConfigurationError` and names the option.

    `tool_parser`, `reasoning_parser`: names from `streamsieve list`; None or "none" leaves that to the
    upstream. `stages`: async generator functions or entry-point names, run after the parser in this
    order. `reasoning_field`: where clients look for reasoning; "both" doubles it for those that read
    both. `deliver`: "complete" holds each call back until it is complete (contract, rule 7).
    `prompt_tail`: what the rendered prompt ends in, for every request; None leaves it to the format.
    `paths`: a request path that ends in one of these is ours. `max_body`: bytes; a request or JSON
    response body, or a single server-sent event, that is longer passes unparsed. `model`: the name of
    the model behind it, for the parser name "auto", which becomes the name that the rules have for it.
    `response_template`: what the parser "hf" reads by, as a mapping, or a JSON file that has it, or a
    folder whose `tokenizer_config.json` has it.
    `tokenizer`: the model's `tokenizer.json`, or the folder that has one: where the upstream sends
    `token_ids`, markers that are only typed are then text (contract, rule 2). `unknown_tools`: what a
    call of a function that is not in the request's `tools` is, a "call" or "text" (contract, rule 6).
    `max_held`: characters of one choice that may wait, in a stream, for what they are to be; then they
    and the rest of the choice are content. `max_calls`: calls of one choice; later ones are left out.
    `announce_calls`: whether a stream tells of each call once more, whole, when it is complete.
    `models`: options that differ by the request's `model`: name or pattern to options, or a TOML file of
    such tables; `auto` goes by the model's name there. `header_parsers`: the parsers that a request may
    choose for itself, by the headers `x-streamsieve-tool-parser` and `x-streamsieve-reasoning-parser`.
    `responses`: what becomes of a request of the Responses API; "parse" sends it on and sorts the reply,
    "translate" asks an upstream that has chat completions only.
    `upstream`: what stands behind, so that it is asked in its own words for raw text and for constraints;
    with None requests go on as they are. `tool_strict_level`: what of calls is constrained where the
    request does not say, as vLLM's `--tool-strict-level` has it. `enforcement`: whether a `tool_choice` that
    cannot be enforced is refused ("always") or passed over ("best_effort"). `render_prompt`: makes the
    prompt of a chat completion request here, and the upstream is asked at `/completions` to go on with it.
    `observers`: who is told of each exchange when it is over: "log", "metrics", "telemetry", or functions
    of a `Record`. `capture`: a file to which every reply is added as a case, with the messages of its
    request where `capture_messages` says so. `shadow`: the upstream sorts, and ours is only compared with it.
    """

    reasoning_parser: str | None = None
    tool_parser: str | None = None
    stages: Sequence[str | Stage] = field(default=(), hash=False)
    reasoning_field: ReasoningField = "reasoning"
    deliver: Deliver = "stream"
    prompt_tail: str | None = None
    paths: Sequence[str] = ("/chat/completions", "/responses")
    max_body: int = 64 * 1024 * 1024
    model: str | None = None
    response_template: Mapping[str, object] | str | Path | None = field(default=None, hash=False)
    tokenizer: str | Path | None = None
    unknown_tools: UnknownTools = "call"
    max_held: int = 8 * 1024 * 1024
    max_calls: int = 1024
    announce_calls: bool = False
    models: Models | str | Path = field(default_factory=dict, hash=False)
    header_parsers: Sequence[str] = ()
    responses: Responses = "parse"
    upstream: Upstream | None = None
    tool_strict_level: ToolStrictLevel = "auto"
    enforcement: Enforcement = "always"
    render_prompt: Renderer | None = field(default=None, hash=False)
    observers: Sequence[str | Observer] = field(default=(), hash=False)
    capture: str | Path | None = None
    capture_messages: bool = False
    shadow: bool = False

    format: Format | None = field(init=False, repr=False, compare=False)
    """What the two parser names come to; None where neither is set."""
    stage_functions: tuple[Stage, ...] = field(init=False, repr=False, compare=False)
    """`stages`, each looked up."""
    special_tokens: SpecialTokens | None = field(init=False, repr=False, compare=False)
    """What `tokenizer` lists; None where it is not set."""
    routes: tuple[Route, ...] = field(init=False, repr=False, compare=False)
    """`models`, each looked at once."""
    told: tuple[Observer, ...] = field(init=False, repr=False, compare=False)
    """Who is told of each exchange: `observers`, each looked up, and `capture`."""
    dialect: Dialect | None = field(init=False, repr=False, compare=False)
    """How `upstream` is asked; None where it is not set."""

    def __post_init__(self) -> None:
        self._check_values()
        self._check_together()
        self._settle()

    def _check_values(self) -> None:
        """Each option by itself."""
        for option, choices in _CHOICES.items():
            if getattr(self, option) not in choices:
                raise unknown_choice(option, getattr(self, option), choices)
        if self.upstream is not None and self.upstream not in DIALECTS:
            raise unknown_choice("upstream", self.upstream, tuple(DIALECTS))
        for option in ("reasoning_parser", "tool_parser", "prompt_tail", "model"):
            value = getattr(self, option)
            if not isinstance(value, str | None):
                raise ConfigurationError(f"{option}: a string or None, not {value!r}")
        if self.render_prompt is not None and not callable(self.render_prompt):
            raise ConfigurationError(f"render_prompt: a function or None, not {self.render_prompt!r}")
        for option, unit in (("max_body", "bytes"), ("max_held", "characters"), ("max_calls", "calls")):
            value = getattr(self, option)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigurationError(f"{option}: a whole number of {unit} above 0, not {value!r}")
        for option in ("announce_calls", "capture_messages", "shadow"):
            if not isinstance(getattr(self, option), bool):
                raise ConfigurationError(f"{option}: True or False, not {getattr(self, option)!r}")
        for path in _sequence("paths", self.paths):
            if not isinstance(path, str) or not path.startswith("/"):
                raise ConfigurationError(f"paths: each begins with '/', such as '/chat/completions'; not {path!r}")
        check_header_parsers(_sequence("header_parsers", self.header_parsers))

    def _check_together(self) -> None:
        """Options that do not go with each other."""
        if self.render_prompt is not None and self.upstream and DIALECTS[self.upstream].completions == "templated":
            raise ConfigurationError(f"render_prompt: {self.upstream} puts each prompt through its own chat template")
        if self.shadow and self.render_prompt is not None:
            raise ConfigurationError("shadow: the upstream is asked for chat completions, so not with render_prompt")
        if self.capture_messages and self.capture is None:
            raise ConfigurationError("capture_messages: needs capture, the file that they are written to")

    def _settle(self) -> None:
        """What the options come to, in their own place or in the fields that are made of them."""
        stages = _sequence("stages", self.stages)
        told = _sequence("observers", self.observers)
        template = self.response_template
        if isinstance(template, str | Path):
            template = load_template(template)
        parsers = rules.resolved(self.tool_parser, self.reasoning_parser, self.model)
        settled = {
            "tool_parser": parsers.tool,
            "reasoning_parser": parsers.reasoning,
            "paths": tuple(self.paths),
            "stages": stages,
            "header_parsers": tuple(self.header_parsers),
            "observers": told,
            "told": observers(told) + self._captures(),
            "dialect": DIALECTS[self.upstream] if self.upstream is not None else None,
            "stage_functions": tuple(map(registry.stage, stages)),
            "special_tokens": SpecialTokens.load(self.tokenizer) if self.tokenizer is not None else None,
            "format": registry.select(
                tool_parser=parsers.tool,
                reasoning_parser=parsers.reasoning,
                response_template=template,
            ),
        }
        for name, settled_value in settled.items():
            object.__setattr__(self, name, settled_value)
        object.__setattr__(self, "routes", routes(self.models, self))

    def _captures(self) -> tuple[Observer, ...]:
        return () if self.capture is None else (Capture(self.capture, keep_messages=self.capture_messages),)

    @property
    def parses(self) -> bool:
        """Whether anything reads the text of replies; without, they are only normalised."""
        return self.format is not None or bool(self.stage_functions)

    def for_request(self, model: object, headers: Sequence[tuple[bytes, bytes]]) -> Settings:
        """The settings that one request is read by (`models`, `header_parsers`); raises Refused."""
        return for_headers(for_model(self, model), headers)

    @property
    def tells_reasoning(self) -> bool:
        """Whether thinking is told apart from the answer."""
        return self.format is not None and bool(self.format.reasoning or self.format.messages)

    @property
    def reads_calls(self) -> bool:
        """Whether calls are told apart from text."""
        messages = self.format.messages if self.format else None
        if messages is None:
            return self.format is not None and self.format.calls is not None
        return not (isinstance(messages, OneOfBoth) and messages.untold == "calls")

    def reading(self, format: Format) -> Settings:
        """These settings, with replies read as `format`."""
        made = copy.copy(self)
        object.__setattr__(made, "format", format)
        return made

    def matches(self, method: str, path: str) -> bool:
        """Whether a request is ours; `path` is without its query string."""
        return method == "POST" and path.endswith(tuple(self.paths))

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], prefix: str = "STREAMSIEVE_") -> Settings:
        """Settings from variables named as the fields are: `STREAMSIEVE_TOOL_PARSER` and so on.

        `STAGES` and `PATHS` are separated by commas; `ANNOUNCE_CALLS` is `1` or `0`. An empty variable counts
        as not set. A variable that is nearly one of these is taken for a misspelling and refused.
        """
        options: dict[str, object] = {}
        for variable, text in environ.items():
            if not variable.startswith(prefix):
                continue
            option = variable.removeprefix(prefix)
            if option not in _READERS:
                _refuse_misspelling(variable, option, prefix)
            elif text:
                options[option.lower()] = _READERS[option](variable, text)
        return cls(**options)  # type: ignore[arg-type]  # checked by __post_init__


def option_from_text(option: str, text: str) -> object:
    """The value of an option of `Settings` that is spelt as in the environment; ConfigurationError where it is none."""
    reader = _READERS.get(option.upper())
    if reader is None:
        raise unknown_choice("option", option, [known.lower() for known in _READERS])
    return reader(option, text)


def _sequence(option: str, value: Sequence[T]) -> tuple[T, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigurationError(f"{option}: a list, not {value!r}")
    return tuple(value)


def _names(_variable: str, text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _text(_variable: str, text: str) -> str:
    return text


def _number(variable: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(f"{variable}: a whole number, not {text!r}") from None


def _switch(variable: str, text: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise unknown_choice(variable, text, list(_SWITCHES))
    return _SWITCHES[text.lower()]


_SWITCHES = {"1": True, "true": True, "0": False, "false": False}


_READERS: Mapping[str, Callable[[str, str], object]] = {
    "REASONING_PARSER": _text,
    "TOOL_PARSER": _text,
    "STAGES": _names,
    "REASONING_FIELD": _text,
    "DELIVER": _text,
    "PROMPT_TAIL": _text,
    "PATHS": _names,
    "MAX_BODY": _number,
    "MODEL": _text,
    "RESPONSE_TEMPLATE": _text,
    "TOKENIZER": _text,
    "UNKNOWN_TOOLS": _text,
    "UPSTREAM": _text,
    "TOOL_STRICT_LEVEL": _text,
    "ENFORCEMENT": _text,
    "RESPONSES": _text,
    "MAX_HELD": _number,
    "MAX_CALLS": _number,
    "ANNOUNCE_CALLS": _switch,
    "MODELS": _text,
    "OBSERVERS": _names,
    "CAPTURE": _text,
    "CAPTURE_MESSAGES": _switch,
    "SHADOW": _switch,
    "HEADER_PARSERS": _names,
}


def _refuse_misspelling(variable: str, option: str, prefix: str) -> None:
    """Only what is close to an option of ours: Kubernetes sets `STREAMSIEVE_PORT` and more like it in
    every pod beside a service named streamsieve, and `STREAMSIEVE_PLUGINS` is the registry's."""
    if difflib.get_close_matches(option.upper(), _READERS, n=1, cutoff=0.7):
        raise unknown_choice("environment variable", variable, [prefix + known for known in _READERS])
