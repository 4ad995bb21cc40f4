"""Parameters between tags, for structural tags: text or JSON, whichever the syntax's own typing reads as the value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamsieve.parsers import tag_parts
from streamsieve.parsers.arguments.narrowed_pattern import other_words
from streamsieve.parsers.arguments.schema_choices import ANY_KIND, Choice, argument_objects, choices
from streamsieve.parsers.arguments.schema_types import Typing
from streamsieve.parsers.arguments.value_tags import (
    SAMPLES,
    in_order,
    is_read_as_json,
    is_read_as_text,
    one_of,
    raw_json,
    raw_text,
)
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import JsonObject, Part, either, pattern, sequence

if TYPE_CHECKING:
    from streamsieve.parsers.calls.tagged import TaggedCalls

_WITHOUT_STRINGS = frozenset({"integer", "number", "boolean", "null"})
_NO_STRINGS: JsonSchema = {"type": [kind for kind in SAMPLES if kind != "string"]}
_OTHER = "\ufdd0"  # stands for a key that is not known: no key has this character


def parameters(syntax: TaggedCalls, name: str, schema: JsonSchema) -> JsonObject:
    """The parameters of a call of `name`, each with the space before it; in the order of the schema."""

    def written(key: str, member: object) -> JsonObject:
        return _parameter(syntax, key, member, schema, f"{name}.{key}")

    objects = []
    for members in argument_objects(schema):
        others = None
        if members.others is not None:
            others = _parameter(syntax, _OTHER, members.others, schema, name, other_words(members.declared))
        objects.append(in_order(members, written, others=others))
    return either(*objects)


def _parameter(
    syntax: TaggedCalls, key: str, schema: object, root: JsonSchema, what: str, key_pattern: str = ""
) -> JsonObject:
    """One parameter; `key_pattern` says what its key may be where that is not known."""
    ways: dict[tuple[str, ...], list[Part]] = {}
    for choice in choices(schema, root):
        for kind in (choice.kind,) if choice.kind else ("string", "object"):
            sample = SAMPLES[kind]
            heads = dict.fromkeys(syntax.parameter.write_opening(key, sample, space) for space in (syntax.space, ""))
            types = syntax.parameter.types_of(sample, root, key, syntax.typing)
            ways.setdefault(tuple(heads), []).extend(_values(syntax, choice, kind, types, root))
    one = one_of((_tagged(syntax, heads, values) for heads, values in ways.items() if values), what)
    parts = sequence(syntax.gap, one)
    return _with_key(parts, key_pattern) if key_pattern else parts


def _tagged(syntax: TaggedCalls, heads: tuple[str, ...], values: list[Part]) -> JsonObject:
    value = sequence(syntax.line_break, either(*values), syntax.line_break)
    return sequence(either(*heads), value, syntax.parameter.value_close)


def _with_key(part: JsonObject, key_pattern: str) -> JsonObject:
    """`part` with a pattern in the place of its key."""
    elements: list[Part] = []
    for element in tag_parts.elements(part):
        before, key, after = str(element.get("value", "")).partition(_OTHER)
        if element["type"] == "or":
            elements.append(either(*(_with_key(one, key_pattern) for one in tag_parts.elements(element))))
        else:
            elements += [before, pattern(key_pattern), after] if key else [element]
    return sequence(*elements)


def _values(syntax: TaggedCalls, choice: Choice, kind: str, types: frozenset[str], root: JsonSchema) -> Iterator[Part]:
    """What may stand for the value: text that the syntax makes a value of this kind of again."""
    typing, stops = syntax.typing, syntax.ends_of_value
    if is_read_as_json(kind, types, typing):
        yield raw_json(_json_schema(choice, kind, root, typing, types), () if kind in _WITHOUT_STRINGS else stops)
    elif kind == "string":
        texts = raw_text(choice, stops, trimmed=syntax.trim != "none")
        yield from (text for text in texts if not isinstance(text, str) or _stays(syntax, text, types))


def _json_schema(choice: Choice, kind: str, root: JsonSchema, typing: Typing, types: frozenset[str]) -> JsonSchema:
    if choice.values or choice.kind != ANY_KIND:
        return choice.alone(root)
    return {"type": "string"} if kind == "string" else {} if is_read_as_json("string", types, typing) else _NO_STRINGS


def _stays(syntax: TaggedCalls, text: str, types: frozenset[str]) -> bool:
    """Whether `text` becomes this very string."""
    trimmed = text if syntax.trim == "none" else text.strip()
    return trimmed == text and is_read_as_text(text, types, syntax.typing)
