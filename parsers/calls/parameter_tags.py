"""Parameters between tags, for structural tags: text or JSON, whichever the syntax's own typing reads as the value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamsieve.parsers import tag_parts
from streamsieve.parsers.arguments.json_text import quote
from streamsieve.parsers.arguments.narrowed_pattern import other_words
from streamsieve.parsers.arguments.schema_choices import ANY_KIND, Choice, alone, argument_objects, choices
from streamsieve.parsers.arguments.schema_types import Typing, is_plain_string, write_json
from streamsieve.parsers.arguments.value_tags import in_order, one_of, raw_json, raw_text
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.tag_parts import JsonObject, Part, either, pattern, sequence

if TYPE_CHECKING:
    from streamsieve.parsers.calls.tagged import TaggedCalls

_SAMPLES: dict[str, object] = {
    "string": "word",
    "integer": 7,
    "number": 0.5,
    "boolean": True,
    "null": None,
    "array": ["word"],
    "object": {"key": 1},
}
_WITHOUT_STRINGS = frozenset({"integer", "number", "boolean", "null"})
_NO_STRINGS: JsonSchema = {"type": [kind for kind in _SAMPLES if kind != "string"]}
_OTHER = "\ufdd0"  # stands for a key that is not known: no key has this character


def parameters(syntax: TaggedCalls, name: str, schema: JsonSchema) -> JsonObject:
    """The parameters of a call of `name`, each with the space before it; in the order of the schema."""
    objects = []
    for members in argument_objects(schema):
        own = [
            (_parameter(syntax, key, member, schema, f"{name}.{key}"), key in members.required)
            for key, member in members.declared.items()
        ]
        others = None
        if members.others is not None:
            others = _parameter(syntax, _OTHER, members.others, schema, name, other_words(members.declared))
        objects.append(in_order(own, others=others))
    return either(*objects)


def _parameter(
    syntax: TaggedCalls, key: str, schema: object, root: JsonSchema, what: str, key_pattern: str = ""
) -> JsonObject:
    """One parameter; `key_pattern` says what its key may be where that is not known."""
    ways: dict[tuple[str, ...], list[Part]] = {}
    for choice in choices(schema, root):
        for kind in (choice.kind,) if choice.kind else ("string", "object"):
            sample = _SAMPLES[kind]
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
    if kind == "string" and not _is_read(typing, '"word"', types):
        texts = raw_text(choice, stops, trimmed=syntax.trim != "none")
        yield from (text for text in texts if not isinstance(text, str) or _stays(syntax, text, types))
    elif kind == "string" or _is_read(typing, write_json(_SAMPLES[kind]), types):
        yield raw_json(_json_schema(choice, kind, root, typing, types), () if kind in _WITHOUT_STRINGS else stops)


def _json_schema(choice: Choice, kind: str, root: JsonSchema, typing: Typing, types: frozenset[str]) -> JsonSchema:
    if choice.values:
        return {"enum": list(choice.values)}
    if choice.kind == ANY_KIND:
        return {"type": "string"} if kind == "string" else {} if _is_read(typing, '"word"', types) else _NO_STRINGS
    return alone(choice.schema, root)


def _is_read(typing: Typing, json_text: str, types: frozenset[str]) -> bool:
    """Whether this JSON text becomes the value that it says."""
    return not is_plain_string(types) and typing.convert(json_text, types) == json_text


def _stays(syntax: TaggedCalls, text: str, types: frozenset[str]) -> bool:
    """Whether `text` becomes this very string."""
    trimmed = text if syntax.trim == "none" else text.strip()
    return trimmed == text and (is_plain_string(types) or syntax.typing.convert(text, types) == f'"{quote(text)}"')
