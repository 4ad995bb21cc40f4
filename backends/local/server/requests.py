"""What a request asks of the engine: how to sample, when to stop, and in which form to answer."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamsieve.backends.local.constraints.demanded import OLDER
from streamsieve.backends.local.sampling.parameters import MAX_LOGPROBS, SamplingParameters
from streamsieve.backends.local.server.generation import Ending
from streamsieve.backends.openai_error import ApiError, bad_request
from streamsieve.backends.request_fields import (
    MAX_CHOICES,
    Body,
    read_boolean,
    read_choices,
    read_include_usage,
    read_integer,
    read_max_tokens,
    read_text,
)

Api = Literal["chat", "completions"]

MAX_STOPS = 16
MAX_STOP_CHARACTERS = 1024

_SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "seed",
    "min_tokens",
    "ignore_eos",
)
_GENERATION = {
    "model", "stream", "stream_options", "n", "max_tokens", "logit_bias", "logprobs", "stop", "stop_token_ids",
    "include_stop_str_in_output", "return_token_ids", "skip_special_tokens", *_SAMPLING,
}  # fmt: skip
_OUTPUT = {"response_format", "structured_outputs", *OLDER, "thinking_token_budget", "include_reasoning"}
_IGNORED = {
    "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "priority", "request_id", "cache_salt", "spaces_between_special_tokens", "prediction", "verbosity",
}  # fmt: skip
"""Fields that only concern accounts, caches and speed, or that nothing here answers to differently."""
KNOWN: Mapping[Api, frozenset[str]] = {
    "chat": frozenset(
        _GENERATION
        | _OUTPUT
        | _IGNORED
        | {"messages", "tools", "tool_choice", "parallel_tool_calls", "max_completion_tokens", "top_logprobs",
           "reasoning_effort", "chat_template_kwargs", "documents", "add_generation_prompt",
           "continue_final_message"}
    ),
    "completions": frozenset(_GENERATION | _OUTPUT | _IGNORED | {"prompt", "echo", "add_special_tokens"}),
}  # fmt: skip
_NEUTRAL: Mapping[str, Sequence[object]] = {
    "modalities": (["text"],),
    "best_of": (1,),
    "suffix": ("",),
    "use_beam_search": (False,),
    "length_penalty": (1, 1.0),
    "function_call": ("none",),
    "functions": ([],),
}
"""Fields that this backend does not have, and the values with which they ask for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, checked. `max_tokens`: None for as many as fit. `choices`: for each prompt."""

    stream: bool
    include_usage: bool
    choices: int
    max_tokens: int | None
    sampling: SamplingParameters
    ending: Ending
    return_token_ids: bool
    skip_special_tokens: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What of the model bears on what may be asked.

    `defaults`: sampling fields by name, as the model's generation config has them, for requests without.
    """

    name: str
    vocabulary: int
    eos_token_ids: frozenset[int]
    defaults: Mapping[str, object]


def read_asked(body: Body, api: Api, served: ServedModel) -> Asked:
    """Read what all requests for text have. Raises ApiError: 404 for another model, 400 for all else."""
    _check_fields(body, api)
    _check_model(body, served.name)
    stream = read_boolean(body, "stream")
    sampling = _sampling(body, api, served)
    stop_token_ids = read_token_ids(body, "stop_token_ids", served.vocabulary)
    return Asked(
        stream=stream,
        include_usage=read_include_usage(body, stream),
        choices=read_choices(body),
        max_tokens=read_max_tokens(body),
        sampling=sampling,
        ending=Ending(
            eos_token_ids=frozenset() if sampling.ignore_eos else served.eos_token_ids,
            stop_token_ids=frozenset(stop_token_ids),
            strings=_stops(body),
            min_tokens=sampling.min_tokens,
            include=read_boolean(body, "include_stop_str_in_output"),
        ),
        return_token_ids=read_boolean(body, "return_token_ids"),
        skip_special_tokens=read_boolean(body, "skip_special_tokens", default=True),
    )


def read_prompts(body: Body, vocabulary: int) -> Sequence[str | Sequence[int]]:
    """`prompt` of a completion request: a text, texts, token ids, or lists of token ids."""
    match body.get("prompt"):
        case str():
            prompts = [body["prompt"]]
        case [str(), *_] | [list(), *_] as prompts if len(prompts) <= MAX_CHOICES:
            pass
        case [int(), *_] as ids:
            prompts = [ids]
        case _:
            raise bad_request(
                f"prompt: text, token ids, or a list of at most {MAX_CHOICES} of either is required.", "prompt"
            )
    texts = [
        read_text({"prompt": prompt}, "prompt")
        if isinstance(prompt, str)
        else read_token_ids({"prompt": prompt}, "prompt", vocabulary)
        for prompt in prompts
    ]
    return [text for text in texts if text is not None]


def read_token_ids(body: Body, name: str, vocabulary: int) -> Sequence[int]:
    """A list of token ids; empty where it is absent or null."""
    given = body.get(name)
    if given is None:
        return []
    if not isinstance(given, list) or not all(
        isinstance(id, int) and not isinstance(id, bool) and 0 <= id < vocabulary for id in given
    ):
        raise bad_request(f"{name}: must be a list of token ids from 0 to {vocabulary - 1}.", name)
    return given


def check_tools(body: Body) -> None:
    """Raise ApiError (400) for tools that are none."""
    tools = body.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list):
        raise bad_request("tools: must be a list.", "tools")
    for index, tool in enumerate(tools):
        match tool:
            case {"type": "function", "function": {"name": str(name), **rest}} if name:
                if not isinstance(rest.get("parameters", {}), dict | None):
                    raise bad_request(f"tools[{index}]: function.parameters must be a JSON schema.", "tools")
            case _:
                raise bad_request(f"tools[{index}]: type 'function' with function.name is required.", "tools")


def _check_fields(body: Body, api: Api) -> None:
    """A field that would change the reply is not passed over in silence."""
    for name, value in body.items():
        if name in KNOWN[api] or value is None:
            continue
        if name in _NEUTRAL:
            if value not in _NEUTRAL[name]:
                raise bad_request(f"{name}: this server does not have it.", name)
            continue
        near = difflib.get_close_matches(name, KNOWN[api], n=1, cutoff=0.7)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise bad_request(f"Unrecognized request argument: {name!r}.{hint}", name)


def _check_model(body: Body, name: str) -> None:
    asked = body.get("model")
    if asked is not None and asked != name:
        message = f"The model {asked!r} does not exist; this server has {name!r}."
        raise ApiError(404, message, param="model", code="model_not_found")


def _sampling(body: Body, api: Api, served: ServedModel) -> SamplingParameters:
    given = {name: body[name] for name in _SAMPLING if body.get(name) is not None}
    logprobs = _chat_logprobs(body) if api == "chat" else read_integer(body, "logprobs", 0, MAX_LOGPROBS)
    try:
        fields = {**served.defaults, **given, "logprobs": logprobs, "logit_bias": _logit_bias(body)}
        sampling = SamplingParameters(**fields)  # type: ignore[arg-type]  # it checks them
        sampling.check_vocabulary(served.vocabulary)
    except (ValueError, TypeError) as error:
        name = str(error).partition(":")[0]
        raise bad_request(f"{error}.", name if name in KNOWN[api] else None) from error
    return sampling


def _chat_logprobs(body: Body) -> int | None:
    wanted = read_boolean(body, "logprobs")
    top = read_integer(body, "top_logprobs", 0, MAX_LOGPROBS)
    if top is not None and not wanted:
        raise bad_request("top_logprobs: only allowed with logprobs: true.", "top_logprobs")
    return (top or 0) if wanted else None


def _logit_bias(body: Body) -> dict[int, object]:
    """Token ids are strings in JSON."""
    given = body.get("logit_bias")
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise bad_request("logit_bias: must be an object of token ids and biases.", "logit_bias")
    bias: dict[int, object] = {}
    for token, value in given.items():
        if not token.isdecimal() or not token.isascii() or len(token) > 10:
            raise bad_request(f"logit_bias: {token!r} is no token id.", "logit_bias")
        bias[int(token)] = value
    return bias


def _stops(body: Body) -> Sequence[str]:
    given = body.get("stop")
    stops = [given] if isinstance(given, str) else given
    if stops is None:
        return ()
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise bad_request("stop: must be a string or a list of strings.", "stop")
    if len(stops) > MAX_STOPS or any(not 0 < len(stop) <= MAX_STOP_CHARACTERS for stop in stops):
        limits = f"at most {MAX_STOPS} strings of 1 to {MAX_STOP_CHARACTERS} characters"
        raise bad_request(f"stop: {limits}.", "stop")
    return stops
