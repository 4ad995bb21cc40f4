"""How far loading is, from the progress bars of transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from functools import partial

from transformers import modeling_gguf_pytorch_utils
from transformers.utils import logging

Progress = Callable[[str, float], None]
"""Told the stage of loading, and how much of it is done, in percent."""


class _Bar:
    """In the place of a bar of `tqdm`, as far as transformers uses one: goes through `items`, and says so."""

    def __init__(
        self, progress: Progress, items: Iterable[object] = (), desc: str = "loading", total: int = 0, **options: object
    ) -> None:
        self._progress, self._items = progress, items
        self._stage = desc.rstrip(". ").lower()
        self._total = len(items) if isinstance(items, Sized) and not total else total
        self._done = 0

    def __iter__(self) -> Iterator[object]:
        for item in self._items:
            yield item
            self.update()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, count: int = 1) -> None:
        self._done += count
        self._progress(self._stage, 100.0 * min(1.0, self._done / self._total) if self._total else 0.0)

    def close(self) -> None:
        """There is nothing on a screen."""


@contextmanager
def reported(progress: Progress) -> Iterator[None]:
    """Have the bars told to `progress` instead of drawn."""
    before = logging.set_tqdm_hook(lambda factory, arguments, options: _Bar(progress, *arguments, **options))
    drawn = vars(modeling_gguf_pytorch_utils)["tqdm"]  # this module asks no hook
    vars(modeling_gguf_pytorch_utils)["tqdm"] = partial(_Bar, progress)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)
        vars(modeling_gguf_pytorch_utils)["tqdm"] = drawn
