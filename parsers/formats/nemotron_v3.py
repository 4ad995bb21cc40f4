"""NVIDIA Nemotron 3 Nano, Super and Ultra: Qwen3's thinking; their calls are `qwen3_coder`."""

from dataclasses import replace

from streamsieve.parsers.formats.qwen3 import QWEN3, QWEN3_THINKING

NEMOTRON_V3 = replace(
    QWEN3,
    name="nemotron_v3",
    tool_names=(),
    reasoning_names=("nemotron_v3", "nemotron_3"),
    reasoning=replace(QWEN3_THINKING, content_key="force_nonempty_content"),
    calls=None,
    ends=("<|im_end|>",),
)

FORMATS = (NEMOTRON_V3,)
