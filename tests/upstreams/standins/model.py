"""A model without weights: it writes what it wants to, as far as a grammar lets it, and then what the grammar has."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import cycle

import xgrammar

_END = 256
_CONTROL = 1
"""A byte that only free text may have."""
_CLOSING = b'"}])>,/'
_PLAIN = (string.ascii_letters + string.digits + "-. ").encode()


@cache
def _compiler() -> xgrammar.GrammarCompiler:
    """For a vocabulary of the 256 bytes and one token that ends the reply."""
    vocabulary = [bytes([byte]) for byte in range(_END)] + [b"<end>"]
    info = xgrammar.TokenizerInfo(
        vocabulary, vocab_type=xgrammar.VocabType.RAW, vocab_size=_END + 1, stop_token_ids=[_END]
    )
    return xgrammar.GrammarCompiler(info)


def compiled_tag(tag: str) -> xgrammar.CompiledGrammar:
    """The grammar of a structural tag; raises RuntimeError or ValueError for what is none."""
    return _compiler().compile_structural_tag(tag)


def compiled_schema(schema: Mapping[str, object]) -> xgrammar.CompiledGrammar:
    """The grammar of JSON of this schema, from the reply's first character."""
    return _compiler().compile_json_schema(json.dumps(schema), max_whitespace_cnt=1)


def write(wanted: str, grammar: xgrammar.CompiledGrammar | None, habits: Sequence[str] = (), seed: int = 0) -> str:
    """What the model writes that wants to write `wanted`; where that is at an end, `habits` lead out of free text."""
    if grammar is None:
        return wanted
    ways_out = cycle(habits or ("</think>",))
    matcher, dice, out = xgrammar.GrammarMatcher(grammar), random.Random(seed), bytearray()
    mask = xgrammar.allocate_token_bitmask(1, _END + 1)
    wish = [*wanted.encode(), _END]
    while not matcher.is_terminated():
        assert len(out) < 2_000, f"the grammar has no end: {out[:200]!r}"
        matcher.fill_next_token_bitmask(mask)
        words = mask[0].tolist()
        allowed = [token for token in range(_END + 1) if words[token >> 5] >> (token & 31) & 1]
        assert allowed, f"the grammar has a dead end: {out!r}"
        if not wish and _CONTROL in allowed and _END not in allowed:
            wish = [*next(ways_out).encode()]
        if wish and wish[0] in allowed:
            token = wish.pop(0)
        else:
            wish = []
            token = _END if _END in allowed else _next(allowed, dice)
        assert matcher.accept_token(token)
        if token != _END:
            out.append(token)
    return out.decode()


def _next(allowed: list[int], dice: random.Random) -> int:
    closing = [token for token in allowed if token in _CLOSING]
    plain = [token for token in allowed if token in _PLAIN]
    return dice.choice(closing if closing and (not plain or dice.random() < 0.4) else plain or allowed)
