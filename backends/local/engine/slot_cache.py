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
    """One token for each of the first slots. `positions` [slots]: where it stands; `length`: what attention sees."""

    slots: Tensor
    positions: Tensor
    length: int


@dataclass(frozen=True, slots=True)
class Segment:
    """`length` new tokens of the sequence in `slot`, behind the `stored` ones."""

    slot: int
    stored: int
    length: int

    @property
    def end(self) -> int:
        """Positions that the slot holds then."""
        return self.stored + self.length


@dataclass(frozen=True, slots=True)
class Prefilling:
    """New tokens of several sequences, one behind the other in a batch of one. `slots` and `positions` [tokens]: where
    each token goes."""

    segments: Sequence[Segment]
    slots: Tensor
    positions: Tensor


class SlotLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]  # transformers' constructor is untyped
    """One layer's buffers, `[slots, heads, positions, width]`.

    Where new keys go and which ones attention gets is said by `access`, which the cache sets before each call of the
    model. The buffers are never copied for decoding.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.access: Decoding | Prefilling | None = None
        self.is_initialized = True
        sizes = [(0, shape.heads, 0, width) for width in (shape.key_width, shape.value_width)]
        self._keys, self._values = (torch.zeros(size, dtype=shape.dtype, device=shape.device) for size in sizes)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the buffers are made by `resize`."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Store the new keys and values, and give those that attention sees."""
        pairs = (self._keys, key_states), (self._values, value_states)
        match self.access:
            case Decoding() as access:
                keys, values = (_decode(buffer, new, access) for buffer, new in pairs)
            case Prefilling() as access:
                keys, values = (_prefill(buffer, new, access) for buffer, new in pairs)
            case None:
                raise RuntimeError("the model was called on a slot cache without set_access")
        return keys, values

    def resize(self, order: Sequence[int], slots: int, positions: int, lengths: Sequence[int]) -> None:
        """New buffers: the old slots in `order` become the first ones, with the first of `lengths` positions each."""
        self._keys = _resized(self._keys, order, slots, positions, lengths)
        self._values = _resized(self._values, order, slots, positions, lengths)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of one slot to another."""
        for buffer in (self._keys, self._values):
            buffer[target, :, :length] = buffer[source, :, :length]

    def swap(self, one: int, other: int, one_length: int, other_length: int) -> None:
        """Exchange two slots that hold so many positions."""
        for buffer in (self._keys, self._values):
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
        return self._keys.shape[2]


def _decode(buffer: Tensor, new: Tensor, access: Decoding) -> Tensor:
    buffer[access.slots, :, access.positions] = new[:, :, 0]
    return buffer[: len(new), :, : access.length]


def _prefill(buffer: Tensor, new: Tensor, access: Prefilling) -> Tensor:
    buffer[access.slots, :, access.positions] = new[0].transpose(0, 1)
    if all(segment.stored == 0 for segment in access.segments):
        return new
    parts = [buffer[segment.slot : segment.slot + 1, :, : segment.end] for segment in access.segments]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _resized(buffer: Tensor, order: Sequence[int], slots: int, positions: int, lengths: Sequence[int]) -> Tensor:
    """Zeros where nothing is stored: attention multiplies what it does not see by nothing, and a NaN would stay one."""
    new = buffer.new_zeros(slots, buffer.shape[1], positions, buffer.shape[3])
    for target, (source, length) in enumerate(zip(order, lengths, strict=True)):
        new[target, :, :length] = buffer[source, :, :length]
    return new


class SlotCache(Cache):
    """The layers of a model, resized and rearranged together."""

    def __init__(self, shapes: Sequence[LayerShape]) -> None:
        self._slot_layers = [SlotLayer(shape) for shape in shapes]
        super().__init__(layers=list(self._slot_layers))
        self.position_bytes = sum(shape.position_bytes for shape in shapes)
        self.slots = 0
        self.positions = 0

    def set_access(self, access: Decoding | Prefilling) -> None:
        """What the next call of the model does."""
        for layer in self._slot_layers:
            layer.access = access

    def resize(self, order: Sequence[int], slots: int, positions: int, lengths: Sequence[int]) -> None:
        """See `SlotLayer.resize`. One layer at a time, so that little is held twice."""
        for layer in self._slot_layers:
            layer.resize(order, slots, positions, lengths)
        self.slots, self.positions = slots, positions

    def copy(self, source: int, target: int, length: int) -> None:
        """See `SlotLayer.copy`."""
        for layer in self._slot_layers:
            layer.copy(source, target, length)

    def swap(self, one: int, other: int, one_length: int, other_length: int) -> None:
        """See `SlotLayer.swap`."""
        for layer in self._slot_layers:
            layer.swap(one, other, one_length, other_length)
