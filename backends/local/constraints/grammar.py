"""Grammars from structural tags: compiled off the event loop, kept, and with limits on what a request may ask for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import xgrammar

from streamsieve.backends.local.constraints.bound_text import Grammar
from streamsieve.backends.local.constraints.marker_tokens import MarkerTokens, TagFault
from streamsieve.backends.local.constraints.vocabulary import Vocabulary
from streamsieve.backends.openai_error import ApiError
from streamsieve.wire.request.refusal import Refused

_BUSY = "Too many grammars are being compiled; try again in a moment.", "server_error"
_RETRY_SECONDS = "5"
_PLACE_IN_CORE = re.compile(r"\[[\d:]+\] \S+\.(?:cc|h):\d+: |^Check failed: .* is false: ")
_REPEATS = re.compile(r"\{(\d+)(?:,(\d*))?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request's grammar may be at most, so that it costs others nothing.

    `characters` of its JSON; `depth` of values within each other in it; `choices` in its `enum`s together, and
    `properties` of its objects; `repeats` that its patterns count up to, added up; `seconds` to compile it.
    """

    characters: int = 262_144
    depth: int = 100
    choices: int = 1000
    properties: int = 1000
    repeats: int = 10_000
    seconds: float = 10.0


class Grammars:
    """Compiles the grammars of one model. `cache`: bytes of compiled grammars that are kept."""

    def __init__(self, vocabulary: Vocabulary, *, limits: Limits | None = None, cache: int = 256 * 1024 * 1024) -> None:
        self.vocabulary = vocabulary
        self._limits = limits or Limits()
        # What a grammar needs of the vocabulary is worked out where it comes to be needed: a large schema whole
        # takes seconds, and most of it is never reached.
        self._compiler = xgrammar.GrammarCompiler(
            vocabulary.info, max_threads=1, cache_limit_bytes=cache, enable_dynamic_compilation=True
        )
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="grammar")

    async def compile(self, tag: Mapping[str, object], param: str) -> Grammar:
        """The grammar of a structural tag. Raises Refused about the request's field `param` where it has none, ApiError
        (503) where those of others take all the time."""
        self._check(tag, param)
        compiling = self._threads.submit(self._compiled, tag, param)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(compiling), self._limits.seconds)
        except TimeoutError as error:
            if compiling.cancelled():  # it was never begun
                raise ApiError(503, *_BUSY, code="grammars_busy", headers={"retry-after": _RETRY_SECONDS}) from error
            raise Refused(f"{param}: takes more than {self._limits.seconds:g} s to compile.", param) from error

    def close(self) -> None:
        """End the threads; what they compile is finished first."""
        self._threads.shutdown(cancel_futures=True)

    def _compiled(self, tag: Mapping[str, object], param: str) -> Grammar:
        markers = MarkerTokens(self.vocabulary)
        try:
            exact = markers.exact(tag.get("format"))
            compiled = self._compiler.compile_structural_tag({"type": "structural_tag", "format": exact})
        except (TagFault, RuntimeError, ValueError) as error:
            raise Refused(f"{param}: {_said(error)}", param) from error
        grammar = Grammar(
            compiled,
            self.vocabulary,
            witness=self.vocabulary.witness(markers.named),
            barred=tuple(sorted(markers.barred)),
            has_lengths=markers.has_lengths,
        )
        start = grammar.start()
        row = start.row()  # the first of what is worked out late, so that the engine need not wait for it
        if row is not None and not row.any() and not start.may_end:
            raise Refused(f"{param}: there is no text that it allows.", param)
        return grammar

    def _check(self, tag: Mapping[str, object], param: str) -> None:
        limits = self._limits
        try:
            characters = len(json.dumps(tag, ensure_ascii=False))
        except RecursionError as error:
            raise Refused(f"{param}: values are nested more than {limits.depth} deep.", param) from error
        except (TypeError, ValueError) as error:
            raise Refused(f"{param}: is not JSON.", param) from error
        choices = properties = repeats = deepest = 0
        for key, value, depth in _values(tag):
            deepest = max(deepest, depth)
            if key == "enum" and isinstance(value, list):
                choices += len(value)
            elif key == "properties" and isinstance(value, Mapping):
                properties += len(value)
            elif isinstance(value, str):
                repeats += sum(int(most or least) for least, most in _REPEATS.findall(value))
        for what, is_now, most in (
            ("characters", characters, limits.characters),
            ("values within each other", deepest, limits.depth),
            ("choices in enum", choices, limits.choices),
            ("properties", properties, limits.properties),
            ("repeats in patterns", repeats, limits.repeats),
        ):
            if is_now > most:
                raise Refused(f"{param}: {is_now} {what}; {most} are the most.", param)


def _values(tag: Mapping[str, object]) -> Iterator[tuple[str, object, int]]:
    """Every value within a tag, with its key and how deep it is."""
    left: list[tuple[str, object, int]] = [("", tag, 0)]
    while left:
        key, value, depth = left.pop()
        yield key, value, depth
        if isinstance(value, Mapping):
            left += [(str(name), inner, depth + 1) for name, inner in value.items()]
        elif isinstance(value, list | tuple):
            left += [(key if isinstance(inner, str) else "", inner, depth + 1) for inner in value]


def _said(error: Exception) -> str:
    """What is wrong, without where in xgrammar's source that was found."""
    return _PLACE_IN_CORE.sub("", str(error)).strip()
