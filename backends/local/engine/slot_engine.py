"""An engine on slots for a model: what fits into this machine's memory is found here."""

from __future__ import annotations

from functools import partial

import psutil
import torch

from streamsieve.backends.local.engine.engine import Engine
from streamsieve.backends.local.engine.slot_cache import round_up
from streamsieve.backends.local.engine.slot_check import check_slots, layer_shapes
from streamsieve.backends.local.engine.slot_executor import SlotExecutor
from streamsieve.backends.local.model.loading import LocalModel
from streamsieve.parsers.errors import ConfigurationError

_FREE_SHARE = {"cuda": 0.9, "cpu": 0.4}
"""Of the memory that is free after loading, for keys and values; on a CPU others want some too."""

_CHUNKS = {"cuda": (1024, 8192), "cpu": (128, 512)}
"""Tokens of prompts in a step beside rows that write, and without: what takes about as long as a few of its steps."""

_ROWS = {"cuda": 64, "cpu": 32}
"""Jobs that run at once where nothing else is said."""


def slot_engine(
    model: LocalModel, *, rows: int | None = None, cache_bytes: int | None = None, queue: int = 256
) -> Engine:
    """An engine, not started yet. Raises ConfigurationError where `model` does not fit slots, or the memory.

    `rows`: jobs that run at once; `queue`: jobs that may wait. `cache_bytes`: for keys and values.
    """
    kind = "cuda" if model.device.type == "cuda" else "cpu"
    rows = rows_at_once(rows, kind)
    shapes = layer_shapes(model)
    check_slots(model, shapes)
    cache_bytes = int(_free_bytes(model.device) * _FREE_SHARE[kind]) if cache_bytes is None else cache_bytes
    needed = round_up(model.longest) * sum(shape.position_bytes for shape in shapes)
    if needed > cache_bytes:
        raise ConfigurationError(
            f"max_model_len: one sequence of {model.longest} tokens takes {needed / 2**20:.0f} MiB, and there are "
            f"{cache_bytes / 2**20:.0f} MiB for the cache; choose a smaller max_model_len"
        )
    executor = partial(SlotExecutor, model, shapes, rows=rows, cache_bytes=cache_bytes)
    chunk, alone = _CHUNKS[kind]
    return Engine(executor, longest=model.longest, rows=rows, queue=queue, chunk=chunk, chunk_alone=alone)


def rows_at_once(asked: int | None, kind: str) -> int:
    """Jobs that run at once on a `kind` of device; `asked`: None for what suits it. Raises ConfigurationError for 0."""
    rows = _ROWS[kind] if asked is None else asked
    if rows < 1:
        raise ConfigurationError(f"slots: {rows} is not 1 or more")
    return rows


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return int(psutil.virtual_memory().available)
