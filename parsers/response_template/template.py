"""Reads a response template, which is data that a checkpoint ships, into what its grammar needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.errors import ConfigurationError, unknown_choice
from streamsieve.parsers.response_template.signs import Sign, Signs, literal
from streamsieve.parsers.response_template.values import BodyParser, Scalar, body_parser

FieldName = Literal["thinking", "content", "tool_calls"]

_NAMES: tuple[FieldName, ...] = ("thinking", "content", "tool_calls")
_TOP_KEYS = ("version", "defaults", "start_anchor", "start_anchor_pattern", "fields")
_FIELD_KEYS = ("open", "open_pattern", "close", "close_pattern", "content", "content_args", "repeats", "join",
               "optional", "transform", "transform_each")  # fmt: skip
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")


NO_SIGNS = Signs(())
_TEXT = Scalar()


@dataclass(frozen=True)
class Field:
    """One part of a reply: what opens and closes it, and what its text is.

    `opens` is empty for the implicit field, `closes` where only the end of the reply ends it.
    `transform` is JSON text, in which whole strings may be placeholders; with `each` it is applied to
    every element of the value.
    """

    name: FieldName
    opens: tuple[Sign, ...] = ()
    closes: Signs = NO_SIGNS
    body: BodyParser = _TEXT
    repeats: bool = False
    transform: str | None = None
    each: bool = False


@dataclass(frozen=True)
class Template:
    """A whole template. `anchors`: behind the last one in the prompt the message itself begins."""

    anchors: tuple[Sign, ...]
    fields: tuple[Field, ...]

    @property
    def implicit(self) -> Field:
        """The field that all text outside the others is in."""
        return next(field for field in self.fields if not field.opens)

    def has(self, name: FieldName) -> bool:
        """Whether there is a field of that name."""
        return any(field.name == name for field in self.fields)


def placeholder(text: str) -> str | None:
    """What `text` stands for, where it is a placeholder."""
    found = _PLACEHOLDER.fullmatch(text)
    return found[1] if found else None


def read_template(template: Mapping[str, object]) -> Template:
    """The template as values. Raises ConfigurationError, which names what is wrong with it."""
    _known(template, _TOP_KEYS, "")
    if template.get("version", 1) != 1:
        raise _wrong("version", f"only 1 is known, got {template['version']!r}")
    _known(_mapping(template.get("defaults", {}), "defaults"), ("role",), "defaults.")
    fields = _mapping(template.get("fields"), "fields")
    _known(fields, _NAMES, "fields.")
    read = [_field(name, _mapping(fields[name], f"fields.{name}")) for name in _NAMES if name in fields]
    if all(field.opens for field in read):
        read.append(Field("content"))
    implicit = [field.name for field in read if not field.opens]
    if len(implicit) > 1 or "tool_calls" in implicit:
        raise _wrong("fields", f"without an opener: {', '.join(implicit)}; at most one of thinking and content may be")
    return Template(_signs(template, "start_anchor", ""), tuple(read))


def _field(name: FieldName, keys: Mapping[str, object]) -> Field:
    where = f"fields.{name}."
    _known(keys, _FIELD_KEYS, where)
    opens = _signs(keys, "open", where)
    arguments = _mapping(keys.get("content_args", {}), f"{where}content_args")
    body = body_parser(keys.get("content", "text"), arguments, f"response_template: {where}content")
    transform = keys.get("transform")
    if name != "tool_calls" and (body != Scalar() or transform is not None or keys.get("join") is not None):
        raise _wrong(where.rstrip("."), "must be plain text, without transform or join")
    if transform is not None and not isinstance(transform, Mapping):
        raise _wrong(f"{where}transform", f"an object, got {transform!r}")
    groups = {group for sign in opens for group in sign.whole.groupindex}
    each = keys.get("transform_each") is True
    for text in _strings(transform):
        _check_placeholder(text, groups, f"{where}transform", each=each)
    return Field(
        name,
        opens,
        Signs(_signs(keys, "close", where)),
        body,
        repeats=keys.get("repeats") is True,
        transform=None if transform is None else json.dumps(transform),
        each=each,
    )


def _signs(keys: Mapping[str, object], key: str, where: str) -> tuple[Sign, ...]:
    """The signs given as `key`, a string or a list, or as `key_pattern`, a regular expression."""
    literals, pattern = keys.get(key), keys.get(f"{key}_pattern")
    if literals is not None and pattern is not None:
        raise _wrong(f"{where}{key}", f"{key} and {key}_pattern are both given")
    if pattern is not None:
        return (_pattern(pattern, f"{where}{key}_pattern"),)
    found = [] if literals is None else literals if isinstance(literals, list) else [literals]
    if not all(isinstance(one, str) and one for one in found) or (literals is not None and not found):
        raise _wrong(f"{where}{key}", f"a string with something in it, or a list of such, got {literals!r}")
    return tuple(map(literal, found))


def _pattern(pattern: object, where: str) -> Sign:
    if not isinstance(pattern, str):
        raise _wrong(where, f"a regular expression, got {pattern!r}")
    try:
        sign = Sign(pattern)
        empty = sign.whole.match("")
        sign.growing.match("")
    except (re.error, RecursionError) as error:
        raise _wrong(where, f"{pattern!r}: {error}") from error
    if empty:
        raise _wrong(where, f"{pattern!r} matches nothing at all")
    return sign


def _check_placeholder(text: str, groups: Iterable[str], where: str, *, each: bool) -> None:
    name = placeholder(text)
    if name is None and _PLACEHOLDER.search(text):
        raise _wrong(where, f"{text!r}: a placeholder stands alone in its string")
    if name and not each and name.partition(".")[0] not in {"content", *groups}:
        raise unknown_choice(f"response_template: {where} placeholder", name, sorted({"content", *groups}))


def _strings(tree: object) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, list):
        for item in tree:
            yield from _strings(item)
    elif isinstance(tree, Mapping):
        for item in tree.values():
            yield from _strings(item)


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _wrong(where, f"an object, got {value!r}")
    return value


def _known(keys: Mapping[str, object], known: Iterable[str], where: str) -> None:
    if unknown := sorted(set(keys) - set(known)):
        raise unknown_choice(f"response_template: {where}key", unknown[0], known)


def _wrong(where: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"response_template: {where}: {why}")
