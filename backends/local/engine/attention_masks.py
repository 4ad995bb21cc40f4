"""Which stored tokens each new token may look at, as the models of transformers want to be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from streamsieve.backends.local.engine.slot_cache import Segment

Mask = Tensor | dict[str, Tensor | None] | None
"""One for all layers, or one for each layer type; None: plain causal attention among the new tokens."""


@dataclass(frozen=True, slots=True)
class AttentionMasks:
    """`windows`: for each layer type of the model, how many tokens back its layers see, the token itself counted;
    None: all. A mask is added to the scores, which every attention of transformers understands, so it has the
    model's `dtype`. `causal_without`: the attention is causal where it gets no mask.
    """

    windows: Mapping[str, int | None]
    dtype: torch.dtype
    device: torch.device
    causal_without: bool

    def decode(self, positions: Tensor, length: int) -> Mask:
        """For one new token a row at `positions` [rows], over `length` stored positions: [rows, 1, 1, length]."""
        seen = torch.arange(length, device=self.device)
        query = positions[:, None, None, None]
        return self._for_layers(seen <= query, query - seen)

    def prefill(self, segments: Sequence[Segment]) -> Mask:
        """For segments behind each other, over what is stored of each and itself: [1, 1, new tokens, all of them]."""
        if len(segments) == 1 and segments[0].stored == 0 and self._unmasked(segments[0].length):
            return None
        query_row, query = self._places([(segment.stored, segment.length) for segment in segments])
        key_row, key = self._places([(0, segment.end) for segment in segments])
        query_row, query = query_row[:, None], query[:, None]
        return self._for_layers((query_row == key_row) & (key <= query), query - key, lift=True)

    def _unmasked(self, length: int) -> bool:
        return self.causal_without and all(window is None or length <= window for window in self.windows.values())

    def _places(self, spans: Sequence[tuple[int, int]]) -> tuple[Tensor, Tensor]:
        """The row and the position of each token of `spans`, which are (start, length)."""
        lengths = torch.tensor([length for _, length in spans])
        rows = torch.repeat_interleave(torch.arange(len(spans)), lengths)
        positions = torch.cat([torch.arange(start, start + length) for start, length in spans])
        return rows.to(self.device), positions.to(self.device)

    def _for_layers(self, causal: Tensor, distance: Tensor, lift: bool = False) -> Mask:
        masks: dict[str, Tensor | None] = {}
        for name, window in self.windows.items():
            allowed = causal if window is None else causal & (distance < window)
            scores = torch.zeros(allowed.shape, dtype=self.dtype, device=self.device)
            scores.masked_fill_(~allowed, torch.finfo(self.dtype).min)
            masks[name] = scores[None, None] if lift else scores
        return masks if len(masks) > 1 else next(iter(masks.values()))
