"""The kinds of upstream that are known, each a frozen value in a file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from streamsieve.wire.dialects.dialect import Dialect
from streamsieve.wire.dialects.llama_cpp import LLAMA_CPP
from streamsieve.wire.dialects.ollama import OLLAMA
from streamsieve.wire.dialects.openai import OPENAI
from streamsieve.wire.dialects.sglang import SGLANG
from streamsieve.wire.dialects.tgi import TGI
from streamsieve.wire.dialects.vllm import VLLM

Upstream = Literal["vllm", "sglang", "llama.cpp", "ollama", "tgi", "openai"]

DIALECTS: Mapping[str, Dialect] = {
    "vllm": VLLM,
    "sglang": SGLANG,
    "llama.cpp": LLAMA_CPP,
    "ollama": OLLAMA,
    "tgi": TGI,
    "openai": OPENAI,
}
