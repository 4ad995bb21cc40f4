"""Replies written by chance under a constraint, and read as the middleware would read them."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from streamsieve.backends.local.constraints.constraint import Constraint
from streamsieve.backends.local.constraints.grammar import Grammars
from streamsieve.backends.local.constraints.request_constraint import Options, RequestConstraint, RequestConstraints
from streamsieve.backends.local.constraints.vocabulary import Vocabulary
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request
from streamsieve.parsers.results import Collector, Message

END = "<|end_of_turn|>"


def byte_level(special: Sequence[str] = (), pieces: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """A tokenizer of single bytes, which never joins them to one of its `pieces`, and of special tokens; `END` too."""
    return PreTrainedTokenizerFast(tokenizer_object=of_bytes((END, *special), pieces), eos_token=END)


def of_bytes(special: Sequence[str], pieces: Sequence[str] = ()) -> Tokenizer:
    """A token for each byte, then one for each of `pieces`, which no text is read as, then the special ones."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    spelled = ["".join(part for part, _ in level.pre_tokenize_str(piece)) for piece in pieces]
    vocabulary = {text: number for number, text in enumerate([*sorted(level.alphabet()), *spelled])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = level, decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    return tokenizer


class Speaker:
    """A tokenizer, with the grammars over its vocabulary. `spare`: rows of the model's output that it does not have."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, stops: Sequence[int] = (), *, spare: int = 0) -> None:
        """`stops`: the tokens that end a reply; none for the tokenizer's own alone."""
        self.tokenizer = tokenizer
        self.stops = list(stops) or [tokenizer.eos_token_id]
        self.vocabulary = Vocabulary(tokenizer, size=len(tokenizer) + spare, stops=self.stops)
        self.grammars = Grammars(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """The tokens of `text`: special ones where it spells them."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    async def constraint(
        self, body: Mapping[str, object], format: Format | None, request: Request, options: Options | None = None
    ) -> RequestConstraint:
        """What binds the replies to a request that binds them."""
        made = await RequestConstraints(self.grammars, format, self.encode, options).of(body, request)
        assert made is not None
        return made


Taste = Mapping[int, float]
"""What is added to the logits of some tokens."""


@dataclass
class Written:
    """A reply: its tokens, whether it came to its end, and where all tokens were allowed."""

    vocabulary: Vocabulary
    tokens: list[int] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    finish: str = "length"

    @property
    def text(self) -> str:
        """The reply without the token that ended it."""
        return self.bytes.decode("utf-8", "replace")

    @property
    def bytes(self) -> bytes:
        """The same."""
        return b"".join(self.vocabulary.texts[token] for token in self.tokens if token not in self.vocabulary.stops)

    def message(self, format: Format, request: Request) -> Message:
        """The reply as a parser with token ids reads it."""
        machine, collector = format.machine(request, tokens=self.vocabulary.markers), Collector()
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        for token in self.tokens:
            if token not in self.vocabulary.stops:
                collector.add(machine.feed(decode(self.vocabulary.texts[token]), [token]))
        collector.add(machine.finish(self.finish))
        return collector.message(self.finish, request)

    def message_by_text(self, format: Format, request: Request) -> Message:
        """The reply as a parser without token ids reads it."""
        return read(format, [self.text], request, whole=True)


def write(
    vocabulary: Vocabulary,
    constraint: Constraint,
    seed: int,
    *,
    most: int = 400,
    taste: Taste | None = None,
    temperature: float = 1.5,
) -> Written:
    """A reply of at most `most` tokens, each drawn from what is allowed by logits that are chance and `taste`."""
    random = np.random.default_rng(seed)
    written = Written(vocabulary)
    bitmask = torch.full((1, -(-vocabulary.size // 32)), -1, dtype=torch.int32)
    liking = np.zeros(vocabulary.size)
    for token, more in (taste or {}).items():
        liking[token] += more
    while len(written.tokens) < most:
        token = constraint.forced()
        if token is None:
            scores = (random.standard_normal(vocabulary.size) + liking) / temperature + random.gumbel(
                size=vocabulary.size
            )
            if constraint.fill(bitmask, 0):
                scores[~allowed(bitmask, vocabulary.size)] = -np.inf
                assert scores.max() > -np.inf, f"no token is allowed behind {written.text!r}"
            else:
                written.free.append(len(written.tokens))
            token = int(scores.argmax())
        constraint.accept(token)
        written.tokens.append(token)
        if token in vocabulary.stops or constraint.done:
            written.finish = "stop"
            break
    return written


def allowed(bitmask: torch.Tensor, size: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The one row of `bitmask` as booleans."""
    return np.unpackbits(bitmask[0].numpy().view(np.uint8), bitorder="little")[:size].astype(bool)


def may_come(constraint: Constraint, vocabulary: Vocabulary) -> set[int]:
    """The tokens that are allowed now."""
    bitmask = torch.full((1, -(-vocabulary.size // 32)), -1, dtype=torch.int32)
    constraint.fill(bitmask, 0)
    return {int(token) for token in np.nonzero(allowed(bitmask, vocabulary.size))[0]}


def say(constraint: Constraint, tokens: Sequence[int]) -> None:
    """Have these tokens come, each of which must be allowed."""
    for token in tokens:
        assert constraint.forced() in (None, token)
        constraint.accept(token)
