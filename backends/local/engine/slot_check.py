"""Whether a model computes on a slot cache what it computes by itself, and what its layers store."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from streamsieve.backends.local.engine.slot_cache import LayerShape, Segment, SlotCache, round_up
from streamsieve.backends.local.engine.slot_calls import SlotCalls
from streamsieve.backends.local.model.loading import LocalModel
from streamsieve.parsers.errors import ConfigurationError

_PROMPTS = ([1, 2, 3, 4, 5], [5, 4, 3])
_DIFFERENCE = {torch.float32: 1e-3}
_COARSE_DIFFERENCE = 0.1


@torch.inference_mode()
def layer_shapes(model: LocalModel) -> list[LayerShape]:
    """What each layer stores for a token, from one call. Raises ConfigurationError for one that stores other things."""
    cache = DynamicCache(config=model.model.config)
    _alone(model, _PROMPTS[0], cache)
    shapes = []
    for layer in cache.layers:
        if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer):
            raise _unfit(model, f"it keeps its state in a {type(layer).__name__}")
        assert isinstance(layer, DynamicLayer)
        if layer.keys is None or layer.values is None:
            raise _unfit(model, "some of its layers store nothing")
        keys, width = layer.keys, layer.values.shape[3]
        shapes.append(LayerShape(keys.shape[1], keys.shape[3], width, keys.dtype, keys.device))
    return shapes


@torch.inference_mode()
def check_slots(model: LocalModel, shapes: Sequence[LayerShape]) -> None:
    """Raise ConfigurationError unless two sequences side by side come out as each does alone.

    This finds the models that make their masks or positions in ways of their own.
    """
    try:
        together = _together(model, shapes)
    except Exception as error:  # a model's code may raise anything at what it does not expect
        raise _unfit(model, f"it raises {type(error).__name__}: {error}") from error
    for prompt, logits in zip(_PROMPTS, together.float(), strict=True):
        alone = _alone(model, prompt, DynamicCache(config=model.model.config)).float()
        difference = float((logits - alone).norm() / alone.norm())
        if not difference < _DIFFERENCE.get(model.dtype, _COARSE_DIFFERENCE):
            raise _unfit(model, f"sequences that run together differ by {difference:.2g} from those that run alone")


def _together(model: LocalModel, shapes: Sequence[LayerShape]) -> Tensor:
    cache = SlotCache(shapes)
    cache.resize([], len(_PROMPTS), round_up(max(map(len, _PROMPTS))), [])
    calls = SlotCalls(model, cache)
    calls.prefill([Segment(slot, 0, len(prompt) - 1) for slot, prompt in enumerate(_PROMPTS)], _PROMPTS)
    return calls.decode([prompt[-1] for prompt in _PROMPTS], [len(prompt) - 1 for prompt in _PROMPTS])


def _alone(model: LocalModel, prompt: Sequence[int], cache: Cache) -> Tensor:
    ids = torch.tensor([prompt], device=model.device)
    logits: Tensor = model.model(input_ids=ids, use_cache=True, **model.cache_argument(cache)).logits
    return logits[0, -1]


def _unfit(model: LocalModel, why: str) -> ConfigurationError:
    return ConfigurationError(f"model: its type {model.model.config.model_type!r} does not fit this backend: {why}")
