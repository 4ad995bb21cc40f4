"""What a request changes in the logits of single tokens: `logit_bias` and the penalties."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from streamsieve.backends.local.sampling.parameters import SamplingParameters


class LogitEdits:
    """One entry a token: its `bias` is added, then `repetition` divides or multiplies, then `penalty` is taken off.

    There are entries for the biased tokens and, where there are penalties, for those of the prompt and
    the reply: a step costs as many entries as there are such tokens, whatever the vocabulary.
    """

    __slots__ = ("_counts", "_entries", "_parameters", "bias", "ids", "penalty", "repetition")

    def __init__(self, parameters: SamplingParameters, prompt: Iterable[int]) -> None:
        self._parameters = parameters
        self._entries: dict[int, int] = {}
        self._counts: Counter[int] = Counter()
        self.ids = array("q")
        self.bias = array("f")
        self.repetition = array("f")
        self.penalty = array("f")
        for token, bias in parameters.logit_bias.items():
            self.bias[self._entry(token)] = bias
        if parameters.repetition_penalty != 1:
            for token in prompt:
                self.repetition[self._entry(token)] = parameters.repetition_penalty

    def __len__(self) -> int:
        return len(self.ids)

    def record(self, token: int) -> None:
        """Count a token of the reply."""
        if not self._parameters.penalises:
            return
        self._counts[token] += 1
        entry = self._entry(token)
        self.repetition[entry] = self._parameters.repetition_penalty
        frequency = self._parameters.frequency_penalty * self._counts[token]
        self.penalty[entry] = self._parameters.presence_penalty + frequency

    def _entry(self, token: int) -> int:
        entry = self._entries.setdefault(token, len(self.ids))
        if entry == len(self.ids):
            self.ids.append(token)
            self.bias.append(0.0)
            self.repetition.append(1.0)
            self.penalty.append(0.0)
        return entry


def apply_edits(logits: Tensor, edits: Mapping[int, LogitEdits]) -> None:
    """Edit `logits` [rows, vocabulary] in place, each row by its own; tokens that the vocabulary lacks are left out."""
    edited = {row: own for row, own in edits.items() if len(own)}
    if not edited:
        return
    lengths = torch.tensor([len(own) for own in edited.values()])
    rows = torch.tensor(list(edited)).repeat_interleave(lengths).to(logits.device)
    ids = _joined(torch.int64, logits.device, (own.ids for own in edited.values()))
    bias = _joined(torch.float32, logits.device, (own.bias for own in edited.values()))
    repetition = _joined(torch.float32, logits.device, (own.repetition for own in edited.values()))
    penalty = _joined(torch.float32, logits.device, (own.penalty for own in edited.values()))
    known = ids < logits.shape[1]
    rows, ids, bias, repetition, penalty = (column[known] for column in (rows, ids, bias, repetition, penalty))
    values = logits[rows, ids] + bias
    values = torch.where(values > 0, values / repetition, values * repetition)
    logits[rows, ids] = values - penalty


def _joined(dtype: torch.dtype, device: torch.device, columns: Iterable[array[int] | array[float]]) -> Tensor:
    return torch.cat([torch.frombuffer(column, dtype=dtype) for column in columns]).to(device)
