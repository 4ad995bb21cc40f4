"""Runs rows on the continuous batching of transformers: a paged cache, made for flash attention on CUDA.

Its parts are used without its thread: the engine's own thread takes each step, so that cancelling, a failure
and a step that hangs are the engine's business, as with slots. transformers says which tokens of which rows
a step computes, and keeps the cache; the logits come here, and ours is the choice of the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import cast

import torch
from torch import Tensor
from transformers import ContinuousBatchingConfig, GenerationConfig
from transformers.generation.continuous_batching.continuous_api import (
    ContinuousBatchingManager,
    ContinuousBatchProcessor,
    ProtoPretrainedModel,
)
from transformers.generation.continuous_batching.input_outputs import ContinuousBatchingIOs
from transformers.generation.continuous_batching.model_runner import infer_max_single_request_tokens
from transformers.generation.continuous_batching.requests import FutureRequestState, RequestState

from streamsieve.backends.local.engine.executor import Usage
from streamsieve.backends.local.engine.paged_attention import PagedAttention
from streamsieve.backends.local.engine.row import Row
from streamsieve.backends.local.engine.scheduler import Work
from streamsieve.backends.local.engine.token_choice import TokenChoice
from streamsieve.backends.local.model.loading import LocalModel
from streamsieve.backends.local.sampling.token import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """How much runs at once.

    `rows`: so many at most. `tokens`: of one step, those of prompts and of rows that write. `page`: tokens of a
    page of the cache; prompts that begin alike share whole pages. `pages`: of the cache, None for what fits.
    """

    rows: int
    tokens: int
    page: int
    pages: int | None


class ContinuousExecutor:
    """An `Executor` (see there). Raises ValueError or MemoryError where transformers cannot batch `model` so, or its
    cache would not hold one longest sequence.

    Rows never end by themselves below it: the engine releases them. What a step reads is up to transformers, whatever
    `Work` says; it keeps `Row.stored` true.
    """

    def __init__(self, model: LocalModel, attention: PagedAttention, batching: Batching) -> None:
        self._model = model
        self._attention = attention
        self._most_rows = batching.rows
        self._rows: dict[str, Row] = {}
        self._read: dict[str, int] = {}
        self._names = map(str, count())
        self._choice = TokenChoice(batching.rows, model.vocabulary, model.device)
        self._tap = _Tap(batching.rows, model.vocabulary, model.device)
        attention.hold()
        try:
            self._batches = _batches(model, batching, self._tap)
            stored = infer_max_single_request_tokens(self._batches.cache)
            if stored < model.longest:
                raise ValueError(f"its cache holds {stored} tokens of one sequence, which may have {model.longest}")
        except BaseException:
            attention.release()
            raise
        self._capacity = self._batches.cache.num_blocks * batching.page

    @property
    def rows(self) -> int:
        return self._most_rows

    @property
    def longest(self) -> int:
        return self._model.longest

    @property
    def usage(self) -> Usage:
        return Usage(sum(row.stored for row in list(self._rows.values())), self._capacity)

    def admit(self, row: Row) -> bool:
        if len(self._rows) >= self._most_rows:
            return False
        name = next(self._names)
        self._rows[name], self._read[name] = row, 0
        self._batches.scheduler.add_waiting_request(
            RequestState(name, initial_tokens=list(row.tokens), max_new_tokens=None)
        )
        return True

    def prepare(self) -> Sequence[Row]:
        return []

    def held(self, row: Row) -> bool:
        return False

    def step(self, work: Work) -> Sequence[tuple[Row, Token]]:
        batches = self._batches
        if not batches.prepare_next_batch():
            return []
        batches._generation_step(self._model.model)
        data = batches.inputs_and_outputs
        assert isinstance(data, ContinuousBatchingIOs)  # the other class is for batches in flight
        parts = data.requests_in_batch
        rows = [self._rows[part.state.request_id] for part in parts]
        ready = [row for row, part in zip(rows, parts, strict=True) if part.has_new_token]
        chosen = self._choice.choose(ready, self._tap.logits[: len(ready)])
        ids = {row: token.id for row, token in chosen}
        data.output_ids[0, : len(ready)] = torch.tensor([ids.get(row, 0) for row in ready])
        batches.update_batch()
        for row, part in zip(rows, parts, strict=True):
            self._advance(row, part)
        return chosen

    def release(self, row: Row) -> None:
        name = next(name for name, other in self._rows.items() if other is row)
        del self._rows[name], self._read[name]
        scheduler = self._batches.scheduler
        scheduler.set_request_cancellation(name)
        scheduler.clear_cancelled_requests()
        # Set where a row had to give way; transformers only takes it back where a row ends by itself.
        scheduler.block_new_requests = False

    def close(self) -> None:
        self._rows.clear()
        del self._batches, self._tap
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()
        self._attention.release()

    def _advance(self, row: Row, part: FutureRequestState) -> None:
        """Take down how far `row` is."""
        name = part.state.request_id
        row.stored = part.state.position_offset
        self._read[name] += part.query_length
        if part.has_new_token and not row.generated:
            row.job.cached_tokens = max(0, len(row.job.prompt) - self._read[name])


class _Tap:
    """In the place of a logits processor: leaves a copy of the logits of a step where the next one finds its own.

    Nothing else is done there, since that part is captured in a CUDA graph. transformers takes the likeliest token
    of what goes on; the one that was chosen is put in its place afterwards.
    """

    supports_continuous_batching = True

    def __init__(self, rows: int, vocabulary: int, device: torch.device) -> None:
        self.logits = torch.empty(rows, vocabulary, device=device)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        rows = min(scores.shape[0], self.logits.shape[0])  # a graph's batch is padded
        self.logits[:rows].copy_(scores[:rows])
        return scores


def _batches(model: LocalModel, batching: Batching, tap: _Tap) -> ContinuousBatchProcessor:
    """The part of transformers that plans and runs steps, without the thread that would drive it."""
    config = ContinuousBatchingConfig(
        page_size=batching.page,
        num_blocks=batching.pages,
        max_batch_tokens=batching.tokens,
        max_requests_per_batch=batching.rows,
        use_async_batching=False,  # the next step reads the tokens that are chosen here
        auto_switch_to_flash=False,
    )
    with torch.random.fork_rng(devices=[]):  # it seeds torch
        make_config: Callable[..., GenerationConfig] = GenerationConfig
        manager = ContinuousBatchingManager(
            cast(ProtoPretrainedModel, model.model), make_config(eos_token_id=-1), config
        )
        manager.logit_processor.logits_processor.append(tap)
        manager.logit_processor.do_processing = True
        manager.warmup()
    assert manager.batch_processor is not None
    return manager.batch_processor
