"""What is read from a model's folder, from GGUF files and from templates that stand alone."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamsieve.backends import gguf, model_files
from streamsieve.backends.model_files import ModelFiles, read_model
from streamsieve.parsers.errors import ConfigurationError


def write(folder: Path, files: Mapping[str, object]) -> str:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(folder)


TEMPLATES: list[tuple[dict[str, object], str | None]] = [
    ({"chat_template.jinja": "file", "tokenizer_config.json": {"chat_template": "entry"}}, "file"),
    ({"additional_chat_templates/tool_use.jinja": "tools", "chat_template.jinja": "file"}, "tools"),
    ({"tokenizer_config.json": {"chat_template": "entry"}}, "entry"),
    (
        {"tokenizer_config.json": {}, "chat_template.json": {"chat_template": "processor"}, "chat_template.jinja": "a"},
        "a",
    ),
    ({"tokenizer_config.json": {"a": 1}, "chat_template.json": {"chat_template": "processor"}}, "processor"),
    (
        {
            "tokenizer_config.json": {
                "chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]
            }
        },
        "b",
    ),
    ({"tokenizer_config.json": {"chat_template": [{"name": "default", "template": "a"}]}}, "a"),
    ({"tokenizer_config.json": {"chat_template": {"rag": "a"}}}, None),
    ({"tokenizer_config.json": {"eos_token": "x"}}, None),
]


@pytest.mark.parametrize(("files", "template"), TEMPLATES)
def test_which_template_of_a_folder(tmp_path: Path, files: dict[str, object], template: str | None) -> None:
    assert read_model(write(tmp_path, files)).template == template


def test_tokens_of_a_folder(tmp_path: Path) -> None:
    config = {
        "bos_token": None,
        "eos_token": {"content": "<end>"},
        "added_tokens_decoder": {"7": {"content": "<think>"}, "8": {"content": "</think>"}},
    }
    model = read_model(write(tmp_path, {"tokenizer_config.json": config}))
    assert (model.bos_token, model.eos_token, model.tokens) == ("", "<end>", {"<think>", "</think>"})


def test_tokens_that_only_tokenizer_json_has(tmp_path: Path) -> None:
    files = {
        "tokenizer_config.json": {"eos_token": "x"},
        "tokenizer.json": {"added_tokens": [{"id": 1, "content": "<a>"}]},
    }
    assert read_model(write(tmp_path, files)).tokens == {"<a>"}


def test_what_a_folder_may_be_called(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--Qwen--Qwen3-8B" / "snapshots" / "b968826"
    write(snapshot, {"chat_template.jinja": "", "config.json": {"_name_or_path": "Qwen/Qwen3-8B-Base"}})
    assert read_model(str(snapshot)).names == ("Qwen/Qwen3-8B-Base", "Qwen/Qwen3-8B", "b968826")


def test_a_template_alone_and_a_name_alone(tmp_path: Path) -> None:
    source = write(tmp_path, {"llama3.1.jinja": "{{ messages }}"}) + "/llama3.1.jinja"
    assert read_model(source) == ModelFiles(source=source, names=("llama3.1",), template="{{ messages }}")
    assert read_model("Qwen/Qwen3-8B") == ModelFiles(source="Qwen/Qwen3-8B", names=("Qwen/Qwen3-8B",))


UNREADABLE: list[tuple[dict[str, object], str, str]] = [
    ({}, "", "neither tokenizer_config.json nor chat_template.jinja"),
    ({"tokenizer_config.json": "{"}, "", "tokenizer_config.json is not JSON"),
    ({"model.bin": ""}, "model.bin", "neither a folder nor a .gguf or .jinja file"),
    ({"model.gguf": "GGML"}, "model.gguf", "does not begin with GGUF"),
    ({}, "absent", "there is no"),
]


@pytest.mark.parametrize(("files", "name", "message"), UNREADABLE)
def test_what_cannot_be_read(tmp_path: Path, files: dict[str, object], name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_model(str(Path(write(tmp_path, files)) / name))


@pytest.mark.parametrize("source", ["./model", "~/model", "model.gguf", "template.jinja", ""])
def test_what_looks_like_a_path_is_no_name(source: str) -> None:
    with pytest.raises(ConfigurationError, match="there is no"):
        read_model(source)


def test_files_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "LARGEST_TEMPLATE", 3)
    with pytest.raises(ConfigurationError, match="larger than 3 bytes"):
        read_model(write(tmp_path, {"chat_template.jinja": "four"}))


# -- GGUF --


def text(string: str) -> bytes:
    data = string.encode()
    return struct.pack("<Q", len(data)) + data


def value(content: Any) -> bytes:
    """A value with its type: strings, whole numbers (uint32), and lists of either (int32)."""
    if isinstance(content, str):
        return struct.pack("<I", 8) + text(content)
    if isinstance(content, int):
        return struct.pack("<II", 4, content)
    kind = 8 if isinstance(content[0], str) else 5
    items = map(text, content) if kind == 8 else (struct.pack("<i", item) for item in content)
    return struct.pack("<IIQ", 9, kind, len(content)) + b"".join(items)


def header(fields: Mapping[str, Any], *, version: int = 3, count: int | None = None) -> bytes:
    start = b"GGUF" + struct.pack("<IQQ", version, 2, len(fields) if count is None else count)
    return start + b"".join(text(key) + value(content) for key, content in fields.items())


FIELDS = {
    "general.architecture": "qwen3",
    "general.name": "Qwen3 8B",
    "qwen3.block_count": 36,
    "tokenizer.ggml.tokens": ["a", "<|im_end|>", "<think>", "é"],
    "tokenizer.ggml.scores": [0, 0, 0, 0],
    "tokenizer.ggml.token_type": [1, 3, 4, 1],
    "tokenizer.ggml.eos_token_id": 1,
    "tokenizer.ggml.bos_token_id": 99,
    "tokenizer.chat_template": "template",
}


@pytest.mark.parametrize("version", [2, 3])
def test_a_gguf_file_and_the_folder_that_has_one(tmp_path: Path, version: int) -> None:
    (tmp_path / "weights.gguf").write_bytes(header(FIELDS, version=version) + b"tensors")
    for source in (tmp_path / "weights.gguf", tmp_path):
        assert read_model(str(source)) == ModelFiles(
            source=str(source),
            names=("Qwen3 8B", "weights"),
            template="template",
            tokens=frozenset({"<|im_end|>", "<think>"}),
            bos_token="",
            eos_token="<|im_end|>",
        )


def test_the_template_for_tools_of_a_gguf_file_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(header({**FIELDS, "tokenizer.chat_template.tool_use": "with tools"}))
    assert read_model(str(file)).template == "with tools"


BROKEN = [
    (header(FIELDS)[:-3], "ends within its header"),
    (header(FIELDS, version=1), "version 1"),
    (header({}, count=10**6), "1000000 fields"),
    (header({}, count=1) + struct.pack("<Q", 2**40), "bytes of a string"),
    (header({}, count=1) + text("a") + struct.pack("<I", 77), "value type 77"),
    (header({}, count=1) + text("a") + struct.pack("<IIQ", 9, 9, 1), "value type 9"),
    (header({}, count=1) + text("a") + struct.pack("<IIQ", 9, 8, 2**40), "elements of a list"),
    (header({}, count=1) + struct.pack("<Q", 1) + b"\xff", "no GGUF file"),
    (b"", "does not begin with GGUF"),
]


@pytest.mark.parametrize(("data", "message"), BROKEN)
def test_a_broken_gguf_file(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(data)
    with pytest.raises(ConfigurationError, match=message):
        gguf.read_fields(file, lambda key: True)
