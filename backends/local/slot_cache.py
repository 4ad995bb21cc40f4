"""Keys and values of many sequences in one buffer a layer, each sequence in a slot and written at its own position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

STEP = 64
"""Buffers, and what attention sees of them, have a multiple of so many positions: shapes recur."""


def round_up(positions: int) -> int:
    """The next multiple of `STEP`."""
    return -(-positions // STEP) * STEP


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What one layer stores for a position: heads, and the width of a key and of a value."""

    heads: int
    key_width: int
    value_width: int
    dtype: torch.dtype
    device: torch.device

    @property
    def position_bytes(self) -> int:
        """Bytes of one position."""
        return self.heads * (self.key_width + self.value_width) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Decoding:
    """One token for each of the first slots. `positions` [rows]: where it stands; `length`: what attention sees."""

    rows: Tensor
    positions: Tensor
    length: int


@dataclass(frozen=True, slots=True)
class Segment:
    """`length` new tokens of the sequence in `slot`, behind the `stored` ones."""

    slot: int
    stored: int
    length: int


@dataclass(frozen=True, slots=True)
class Prefilling:
    """New tokens of several sequences, one behind the other in a batch of one."""

    segments: Sequence[Segment]


class SlotLayer(CacheLayerMixin):
    """One layer's buffers, `[slots, heads, positions, width]`.

    Where new keys go and which ones attention gets is said by `access`, which the cache sets before each call of the
    model. The buffers are never handed out whole, and never copied for decoding.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.shape = shape
        self.access: Decoding | Prefilling | None = None
        self.resize([], 0, 0)
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the buffers are made by `resize`."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Store the new keys and values, and give those that attention sees."""
        if isinstance(self.access, Decoding):
            return self._decode(key_states, value_states, self.access)
        assert self.access is not None
        return self._prefill(key_states, value_states, self.access)

    def _decode(self, keys: Tensor, values: Tensor, access: Decoding) -> tuple[Tensor, Tensor]:
        written = len(access.rows)  # rows behind these are padding
        self.keys[access.rows, :, access.positions] = keys[:written, :, 0]
        self.values[access.rows, :, access.positions] = values[:written, :, 0]
        rows = len(keys)
        return self.keys[:rows, :, : access.length], self.values[:rows, :, : access.length]

    def _prefill(self, keys: Tensor, values: Tensor, access: Prefilling) -> tuple[Tensor, Tensor]:
        start = 0
        for segment in access.segments:
            new, place = slice(start, start + segment.length), slice(segment.stored, segment.stored + segment.length)
            self.keys[segment.slot, :, place] = keys[0, :, new]
            self.values[segment.slot, :, place] = values[0, :, new]
            start += segment.length
        if all(segment.stored == 0 for segment in access.segments):
            return keys, values
        return self._gather(self.keys, access), self._gather(self.values, access)

    def _gather(self, buffer: Tensor, access: Prefilling) -> Tensor:
        parts = [
            buffer[segment.slot : segment.slot + 1, :, : segment.stored + segment.length] for segment in access.segments
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)

    def resize(self, order: Sequence[int], slots: int, positions: int, lengths: Sequence[int] = ()) -> None:
        """New buffers: the old slots in `order` become the first ones, with the first of `lengths` positions each."""
        shape = self.shape
        for name, width in (("keys", shape.key_width), ("values", shape.value_width)):
            size = (slots, shape.heads, positions, width)
            new = torch.zeros(size, dtype=shape.dtype, device=shape.device)
            old = getattr(self, name)
            for target, (source, length) in enumerate(zip(order, lengths, strict=True)):
                new[target, :, :length] = old[source, :, :length]
            setattr(self, name, new)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of one slot to another."""
        self.keys[target, :, :length] = self.keys[source, :, :length]
        self.values[target, :, :length] = self.values[source, :, :length]

    def swap(self, one: int, other: int, one_length: int, other_length: int) -> None:
        """Exchange two slots that hold so many positions."""
        for buffer in (self.keys, self.values):
            kept = buffer[one, :, :one_length].clone()
            buffer[one, :, :other_length] = buffer[other, :, :other_length]
            buffer[other, :, :one_length] = kept

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """What a model needs that makes its mask itself: the tokens of this call alone (a first chunk)."""
        return query_length, 0

    def get_seq_length(self) -> int:
        """Zero: positions are always given to the model, never counted from this."""
        return 0

    def get_max_length(self) -> int:
        """Positions of a slot."""
        return int(self.keys.shape[2])


class SlotCache(Cache):
    """The layers of a model, resized and rearranged together."""

    def __init__(self, shapes: Sequence[LayerShape]) -> None:
        super().__init__(layers=[SlotLayer(shape) for shape in shapes])
        self.position_bytes = sum(shape.position_bytes for shape in shapes)
        self.slots = 0
        self.positions = 0

    def set_access(self, access: Decoding | Prefilling) -> None:
        """What the next call of the model does."""
        for layer in self.layers:
            layer.access = access

    def resize(self, order: Sequence[int], slots: int, positions: int, lengths: Sequence[int]) -> None:
        """See `SlotLayer.resize`. One layer at a time, so that little is held twice."""
        for layer in self.layers:
            layer.resize(order, slots, positions, lengths)
        self.slots, self.positions = slots, positions

    def copy(self, source: int, target: int, length: int) -> None:
        """See `SlotLayer.copy`."""
        for layer in self.layers:
            layer.copy(source, target, length)

    def swap(self, one: int, other: int, one_length: int, other_length: int) -> None:
        """See `SlotLayer.swap`."""
        for layer in self.layers:
            layer.swap(one, other, one_length, other_length)
