"""What the files of a model say of its replies: chat template, special tokens, and what it may be called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from streamsieve.backends import gguf
from streamsieve.parsers.errors import ConfigurationError

LARGEST_TEMPLATE = 1024 * 1024
LARGEST_JSON = 256 * 1024 * 1024
"""Bytes; a tokenizer.json of 250,000 tokens has about 35 MB."""

_TEMPLATES = ("tool_use", "default")
"""Where a model has several templates, those for a request with tools, the best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A model as far as its replies go.

    `source`: what it was read from. `names`: what it may be called, the surest first. `template`: the
    source of the chat template for requests with tools. `tokens`: special and added tokens.
    `response_template`: what the parser `hf` reads by, where the tokenizer ships one.
    """

    source: str
    names: tuple[str, ...] = ()
    template: str | None = None
    tokens: frozenset[str] = frozenset()
    bos_token: str = ""
    eos_token: str = ""
    response_template: Mapping[str, object] | None = None


def read_model(source: str) -> ModelFiles:
    """The model in a folder or GGUF file, the model whose chat template is a `.jinja` file, or one known by name.

    A folder is one that `transformers` loads, or that holds one GGUF file. Raises ConfigurationError
    where a file cannot be read, or `source` is neither there nor like a model's name.
    """
    path = Path(source)
    if source and path.is_dir():
        return _folder(source, path)
    if path.is_file():
        if path.suffix == ".gguf":
            return _gguf(source, path)
        if path.suffix in (".jinja", ".jinja2", ".j2"):
            return ModelFiles(source=source, names=(path.stem,), template=_template(path))
        raise ConfigurationError(f"model: {source} is neither a folder nor a .gguf or .jinja file")
    if path.is_absolute() or source.startswith((".", "~")) or path.suffix in (".gguf", ".jinja") or not source:
        raise ConfigurationError(f"model: there is no {source!r}")
    return ModelFiles(source=source, names=(source,))


def _folder(source: str, path: Path) -> ModelFiles:
    tokenizer = _json(path / "tokenizer_config.json")
    template = _folder_template(path, tokenizer)
    if not tokenizer and template is None:
        models = sorted(path.glob("*.gguf"))
        if len(models) == 1:
            return _gguf(source, models[0])
        raise ConfigurationError(
            f"model: {source} has neither tokenizer_config.json nor chat_template.jinja, and {len(models)} GGUF files"
        )
    response_template = tokenizer.get("response_template")
    return ModelFiles(
        source=source,
        names=tuple(_folder_names(path)),
        template=template,
        tokens=frozenset(_added_tokens(path, tokenizer)),
        bos_token=_token(tokenizer.get("bos_token")),
        eos_token=_token(tokenizer.get("eos_token")),
        response_template=response_template if isinstance(response_template, dict) else None,
    )


def _folder_template(path: Path, tokenizer: Mapping[str, object]) -> str | None:
    """As `transformers` looks for it: files of their own come before the entry in the tokenizer's configuration."""
    for file in (path / "additional_chat_templates" / "tool_use.jinja", path / "chat_template.jinja"):
        if file.is_file():
            return _template(file)
    found = tokenizer.get("chat_template") or _json(path / "chat_template.json").get("chat_template")
    if isinstance(found, list):
        found = {entry.get("name"): entry.get("template") for entry in found if isinstance(entry, dict)}
    if isinstance(found, dict):
        found = next((found[name] for name in _TEMPLATES if name in found), None)
    return found if isinstance(found, str) else None


def _folder_names(path: Path) -> Iterator[str]:
    """The name in config.json, that of the download cache (`models--OWNER--NAME`), then the folder's own."""
    named = _json(path / "config.json").get("_name_or_path")
    if isinstance(named, str) and named:
        yield named
    absolute = path.absolute()
    for part in reversed(absolute.parts):
        if part.startswith("models--"):
            yield part.removeprefix("models--").replace("--", "/")
    yield absolute.name


def _added_tokens(path: Path, tokenizer: Mapping[str, object]) -> Iterator[str]:
    decoder = tokenizer.get("added_tokens_decoder")
    if isinstance(decoder, dict):
        yield from map(_token, decoder.values())
        return
    added = _json(path / "tokenizer.json").get("added_tokens")
    yield from map(_token, added if isinstance(added, list) else ())


def _token(entry: object) -> str:
    """A token's text; the configuration has it bare or as an object."""
    text = entry.get("content") if isinstance(entry, dict) else entry
    return text if isinstance(text, str) else ""


def _gguf(source: str, path: Path) -> ModelFiles:
    vocabulary = "tokenizer.ggml.tokens"
    keys = {"general.name", "general.basename", vocabulary, "tokenizer.ggml.token_type"}
    ids = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}
    fields = gguf.read_fields(path, lambda key: key in keys | ids or key.startswith("tokenizer.chat_template"))
    tokens, types = fields.get(vocabulary), fields.get("tokenizer.ggml.token_type")
    words = tokens if isinstance(tokens, list) else []

    def text(key: str) -> str:
        number = fields.get(key)
        return words[number] if isinstance(number, int) and 0 <= number < len(words) else ""

    templates = [fields.get(key) for key in ("tokenizer.chat_template.tool_use", "tokenizer.chat_template")]
    names = [fields.get(key) for key in ("general.name", "general.basename")]
    return ModelFiles(
        source=source,
        names=(*(name for name in names if isinstance(name, str) and name), path.stem),
        template=next((template for template in templates if isinstance(template, str)), None),
        tokens=gguf.special_tokens(words, types if isinstance(types, list) else []),
        bos_token=text("tokenizer.ggml.bos_token_id"),
        eos_token=text("tokenizer.ggml.eos_token_id"),
    )


def _template(path: Path) -> str:
    return _text(path, LARGEST_TEMPLATE)


def _json(path: Path) -> Mapping[str, object]:
    """The object in a JSON file; empty where there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(_text(path, LARGEST_JSON))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"model: {path} is not JSON: {error}") from error
    return found if isinstance(found, dict) else {}


def _text(path: Path, limit: int) -> str:
    try:
        if path.stat().st_size > limit:
            raise ConfigurationError(f"model: {path} is larger than {limit} bytes")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"model: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"model: {path} is not UTF-8: {error}") from error
