"""An engine on the continuous batching of transformers: what of it suits the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import transformers

from streamsieve.backends.local.engine.engine import Engine
from streamsieve.backends.local.engine.executor import Executor
from streamsieve.backends.local.engine.paged_attention import PagedAttention
from streamsieve.backends.local.engine.slot_engine import rows_at_once
from streamsieve.backends.local.model.loading import LocalModel
from streamsieve.parsers.errors import ConfigurationError

_TRANSFORMERS = (5, 24)
"""Where its continuous batching is as the executor knows it."""

_TOKENS = {"cuda": 2048, "cpu": 256}
"""Of one step: what takes about as long as a few steps of rows that write."""

_PAGE = {"cuda": 256, "cpu": 32}
"""On CUDA what flash attention reads; smaller ones are shared by more prompts."""

_CPU_POSITIONS = 16_384
"""Of the cache on a CPU, or the longest sequence: a step has a mask of all of them for each of its tokens."""


def continuous_engine(
    model: LocalModel, *, rows: int | None = None, positions: int | None = None, queue: int = 256
) -> Engine:
    """An engine, not started yet. Raises ConfigurationError where transformers cannot batch `model`, or
    the memory does not hold one sequence of it.

    `rows`: jobs that run at once; `queue`: jobs that may wait. `positions`: tokens that the cache holds for all rows
    together; None for what fits on CUDA, and what is reasonable on a CPU.
    """
    if tuple(map(int, transformers.__version__.split(".")[:2])) < _TRANSFORMERS:
        raise ConfigurationError(
            f"executor: 'continuous' needs transformers {'.'.join(map(str, _TRANSFORMERS))} or newer, and this is "
            f"{transformers.__version__}; choose 'slots'"
        )
    # With an older one even the import would fail.
    from streamsieve.backends.local.engine.continuous_executor import Batching, ContinuousExecutor

    kind = "cuda" if model.device.type == "cuda" else "cpu"
    rows = rows_at_once(rows, kind)
    if positions is None and kind == "cpu":
        positions = max(_CPU_POSITIONS, model.longest)
    batching = Batching(
        rows=rows,
        tokens=max(_TOKENS[kind], rows),
        page=_PAGE[kind],
        pages=None if positions is None else -(-positions // _PAGE[kind]),
    )
    executor = partial(ContinuousExecutor, model, PagedAttention(model), batching)
    _check(executor)
    return Engine(
        executor,
        longest=model.longest,
        rows=rows,
        queue=queue,
        chunk=batching.tokens,
        chunk_alone=batching.tokens,
    )


@torch.inference_mode()
def _check(make: Callable[[], Executor]) -> None:
    """Raise ConfigurationError where there is no executor."""
    try:
        make().close()
    except Exception as error:  # whatever transformers finds
        raise ConfigurationError(
            f"executor: 'continuous' cannot run this model: {error}; choose 'slots', or a smaller max_model_len"
        ) from error
