"""The two calls of a model on a slot cache: reading prompts, and one more token for each row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from streamsieve.backends.local.engine.attention_masks import AttentionMasks
from streamsieve.backends.local.engine.slot_cache import Decoding, Prefilling, Segment, SlotCache, round_up
from streamsieve.backends.local.model.loading import LocalModel


class SlotCalls:
    """Calls `model` with what it has to be told: tokens, positions, masks, and where the cache is written."""

    def __init__(self, model: LocalModel, cache: SlotCache) -> None:
        self._model, self._cache = model, cache
        self._body = model.model.base_model
        self._cache_argument = model.cache_argument(cache)
        self._masks = AttentionMasks(model.windows, model.dtype, model.device, model.causal_without_mask)

    def prefill(self, segments: Sequence[Segment], tokens: Sequence[Sequence[int]]) -> None:
        """Read `segments` of the sequences `tokens`, in a batch of one: no padding, each sees its own alone. There
        are no logits: the last token of a prompt goes through `decode`."""
        ids: list[int] = []
        slots: list[int] = []
        places: list[int] = []
        for segment, sequence in zip(segments, tokens, strict=True):
            ids += sequence[segment.stored : segment.end]
            slots += [segment.slot] * segment.length
            places += range(segment.stored, segment.end)
        positions = self._tensor(places)
        self._cache.set_access(Prefilling(segments, self._tensor(slots), positions))
        self._body(
            input_ids=self._tensor(ids)[None],
            position_ids=positions[None],
            attention_mask=self._masks.prefill(segments),
            use_cache=True,
            **self._cache_argument,
        )

    def decode(self, tokens: Sequence[int], stored: Sequence[int]) -> Tensor:
        """The logits [rows, vocabulary] behind one more token for each of the first slots, which hold `stored` each."""
        length = min(round_up(max(stored) + 1), self._cache.positions)
        ids, positions = self._tensor(tokens), self._tensor(stored)
        self._cache.set_access(Decoding(torch.arange(len(tokens), device=ids.device), positions, length))
        output = self._model.model(
            input_ids=ids[:, None],
            position_ids=positions[:, None],
            attention_mask=self._masks.decode(positions, length),
            use_cache=True,
            **self._cache_argument,
        )
        logits: Tensor = output.logits
        return logits[:, -1]

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        if self._model.device.type != "cuda":
            return torch.tensor(numbers, device=self._model.device)
        return torch.tensor(numbers).pin_memory().to(self._model.device, non_blocking=True)
