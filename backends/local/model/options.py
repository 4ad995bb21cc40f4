"""How a model that runs here is loaded and run; it can be said where torch is not installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ExecutorName = Literal["slots", "continuous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How a model is loaded and run.

    `source`: a folder, or a GGUF file. `slots`: replies that are written at once, None for what suits the device;
    `queue`: replies that may wait beside them. `max_model_len`: tokens of prompt and reply, None for the model's own.
    `enable_in_reasoning`: what binds the answer binds the thinking too.
    """

    source: Path
    dtype: str = "auto"
    device: str = "auto"
    slots: int | None = None
    queue: int = 256
    max_model_len: int | None = None
    executor: ExecutorName = "slots"
    enable_in_reasoning: bool = False

    @property
    def tokenizer(self) -> Path | None:
        """The `tokenizer.json` in the model's folder, where there is one: its token ids come with the text."""
        file = self.source / "tokenizer.json"
        return file if file.is_file() else None
