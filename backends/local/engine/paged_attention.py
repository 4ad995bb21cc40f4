"""The attention that continuous batching needs, set on the model while it runs and put back afterwards."""

from __future__ import annotations

import logging
import threading

from transformers.utils.import_utils import is_flash_attn_2_available, is_flash_attn_3_available

from streamsieve.backends.local.model.loading import LocalModel

logger = logging.getLogger(__name__)


class PagedAttention:
    """Set while anyone holds it. An executor that follows a failed one may begin before that one has ended."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model.model
        self._own = str(self._model.config._attn_implementation)
        self._paged = _choice(model, self._own)
        self._lock = threading.Lock()
        self._holders = 0

    def hold(self) -> None:
        """Set it, if nobody holds it yet."""
        with self._lock:
            self._holders += 1
            if self._holders == 1 and self._paged != self._own:
                self._model.set_attn_implementation(self._paged)

    def release(self) -> None:
        """Put the model's own back, if nobody else holds it."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._paged != self._own:
                self._model.set_attn_implementation(self._own)


def _choice(model: LocalModel, own: str) -> str:
    if own.startswith("flash_attention"):
        return own
    if model.device.type == "cuda" and model.model._supports_flash_attn:
        if is_flash_attn_3_available():
            return "flash_attention_3"
        if is_flash_attn_2_available():
            return "flash_attention_2"
        logger.warning(
            "executor: 'continuous' without flash attention computes each token over the cache of all rows; "
            "install flash-attn, or choose 'slots'"
        )
    return "paged|eager" if own == "eager" else own
