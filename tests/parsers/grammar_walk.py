"""Replies that a structural tag allows, found by walking through it: bytes, and the tag's own literals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from random import Random

import xgrammar
from torch import Tensor

from streamsieve.parsers.tag_parts import JsonObject

_BYTES = [bytes([code]) for code in range(256)]
_STOP = 256
_TYPED = [ord(one) for one in "abcxyzABC012789_ -.\n'\"\\/<>{}[]()|:,=&!?"]
_ENDS = ['"', "'", "}", "]", ")", ">"]
_STEPS = 300


@lru_cache(maxsize=1)
def _compiler() -> xgrammar.GrammarCompiler:
    vocabulary = xgrammar.TokenizerInfo(
        [*_BYTES, b"</s>"], xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[_STOP]
    )
    return xgrammar.GrammarCompiler(vocabulary, max_threads=1, cache_enabled=True)


def _allowed(matcher: xgrammar.GrammarMatcher, mask: Tensor) -> list[int]:
    matcher.fill_next_token_bitmask(mask)
    words = [word & 0xFFFFFFFF for word in mask[0].tolist()]
    return [code for code in range(_STOP + 1) if words[code // 32] >> code % 32 & 1]


class Walk:
    """A reply as far as it is written."""

    def __init__(self, tag: JsonObject) -> None:
        self._matcher = xgrammar.GrammarMatcher(_compiler().compile_structural_tag(tag))
        self._mask = xgrammar.allocate_token_bitmask(1, 257)
        self._literals = sorted(set(_literals(tag)))
        self._written = b""

    @property
    def text(self) -> str:
        """The reply so far."""
        return self._written.decode()

    def allowed(self) -> list[int]:
        """The bytes that may come next; 256 is the end."""
        return _allowed(self._matcher, self._mask)

    def write(self, text: str) -> bool:
        """Go on with `text`, if that is allowed."""
        taken = self._matcher.accept_string(text)
        self._written += text.encode() if taken else b""
        return bool(taken)

    def forced(self) -> bool:
        """Go on with what may come next and is no white space; False at the end."""
        code = next((code for code in self.allowed() if code != _STOP and not chr(code).isspace()), None)
        if code is None:
            return False
        assert self._matcher.accept_token(code)
        self._written += bytes([code])
        return True

    def _narrow(self, random: Random) -> bool:
        """Go on with the literal behind which least may follow: out of free text, on to the end."""
        ends: dict[str, int] = {}
        known = random.sample(self._literals, min(len(self._literals), 12))
        for literal in random.sample([*_ENDS, *known], len(_ENDS) + len(known)):
            fork = self._matcher.fork()
            if fork.accept_string(literal):
                ends[literal] = 0 if fork.is_completed() else len(_allowed(fork, self._mask))
        if not ends:
            return False
        return self.write(min(ends, key=ends.__getitem__) if random.random() < 0.7 else random.choice(list(ends)))

    def _byte(self, random: Random) -> bool:
        """Go on with one byte; False where only the end may come."""
        allowed = [code for code in self.allowed() if code != _STOP]
        if not allowed:
            assert self.may_end
            return False
        ascii_only = [code for code in allowed if code < 128]
        likely = [code for code in ascii_only if code in _TYPED] or ascii_only or allowed
        code = random.choice(likely)
        assert self._matcher.accept_token(code)
        self._written += bytes([code])
        return True

    @property
    def may_end(self) -> bool:
        """Whether the reply may end here."""
        return bool(self._matcher.is_completed())

    def at_random(self, random: Random) -> str | None:
        """Go on until an end; None where none came in time."""
        for step in range(_STEPS):
            if self.may_end and random.random() < (0.4 if step < 200 else 0.9):
                return self.text
            if random.random() < step / 40 and self._narrow(random):
                continue
            if random.random() < 0.3 and self.write(random.choice([*self._literals, *_ENDS])):
                continue
            if not self._byte(random):
                return self.text
        return None


def accepts(tag: JsonObject, text: str) -> bool:
    """Whether `text` is a whole reply by `tag`."""
    walk = Walk(tag)
    return walk.write(text) and walk.may_end


def _literals(part: object) -> Iterator[str]:
    """Every text that the tag has as it is, and every line of it."""
    if isinstance(part, dict):
        found = [part.get("value"), part.get("begin"), *(part.get("triggers") or []), *(part.get("excludes") or [])]
        yield from (one for one in found if isinstance(one, str) and one)
        for value in part.values():
            yield from _literals(value)
    elif isinstance(part, list):
        for value in part:
            yield from _literals(value)
