"""How a response template makes calls of the text of its `tool_calls` field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from streamsieve.parsers.arguments.declared_order import cast
from streamsieve.parsers.arguments.json_text import is_object, quote
from streamsieve.parsers.arguments.schema_place import parameters_place
from streamsieve.parsers.arguments.schema_types import write_json
from streamsieve.parsers.request import JsonSchema
from streamsieve.parsers.response_template.template import Field, placeholder
from streamsieve.parsers.response_template.values import Json, Unparsable

Values = Mapping[str, object]


@dataclass(frozen=True)
class Passage:
    """A body of plain JSON whose arguments are passed on as written.

    `shape`: the body is an object with `name` and `arguments` as keys, a list of such, or it is the
    arguments themselves and the opener's group `name` has the name.
    """

    shape: Literal["object", "list", "arguments"]
    name: str
    arguments: str = ""


def passage(field: Field) -> Passage | None:
    """How to pass on the arguments of this field's calls as they come; None where its text has to be read first."""
    if not (isinstance(field.body, Json) and field.body.is_plain) or field.transform is None:
        return None
    function = json.loads(field.transform).get("function")
    if function == "{content}" and not field.each:
        return Passage("object", "name", "arguments")
    if not isinstance(function, dict):
        return None
    name, arguments = (placeholder(str(function.get(key, ""))) or "" for key in ("name", "arguments"))
    groups = {group for sign in field.opens for group in sign.whole.groupindex}
    if field.each:
        is_key = name and arguments and not {name, arguments} & groups and "." not in name + arguments
        return Passage("list", name, arguments) if is_key else None
    if name in groups:
        return Passage("arguments", name) if arguments == "content" else None
    keys = [one.removeprefix("content.") for one in (name, arguments)]
    is_key = all(one.startswith("content.") for one in (name, arguments)) and "." not in "".join(keys)
    return Passage("object", *keys) if is_key and keys[0] != keys[1] else None


def made_calls(field: Field, text: str, captured: Values, tools: Mapping[str, JsonSchema]) -> list[tuple[str, str]]:
    """The calls, each a name and arguments as JSON text, in a whole body. Raises Unparsable."""
    value = field.body.value(text)
    if not field.each:
        return [_call(_transformed(field, {**captured, "content": value}), tools)]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unparsable("no list of objects")
    return [_call(_transformed(field, {**captured, "content": item, **item}), tools) for item in value]


def cut_call(field: Field, text: str, captured: Values, tools: Mapping[str, JsonSchema]) -> tuple[str, str] | None:
    """The call in a body that is cut off, its arguments as far as they are complete; None where it is none yet."""
    members = field.body.closed(text)
    if members is None or field.each or field.transform is None:
        return None
    function = _transformed(field, {**captured, "content": members}).get("function")
    name, arguments = (
        (function.get("name"), function.get("arguments")) if isinstance(function, Mapping) else (None, None)
    )
    if not isinstance(name, str) or not isinstance(arguments, dict) or arguments is not members:
        return None
    return name, _object(arguments, tools.get(name))[:-1].rstrip("{")


def _call(value: Values, tools: Mapping[str, JsonSchema]) -> tuple[str, str]:
    function = value.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str):
        raise Unparsable("a call without a name")
    arguments = function.get("arguments", {})
    if isinstance(arguments, str) and is_object(arguments):
        return name, arguments
    if not isinstance(arguments, dict):
        raise Unparsable("arguments that are no object")
    return name, _object(arguments, tools.get(name))


def _transformed(field: Field, values: Values) -> Values:
    tree = values["content"] if field.transform is None else _filled(json.loads(field.transform), values)
    return tree if isinstance(tree, Mapping) else {}


def _filled(tree: object, values: Values) -> object:
    """`tree` with what its placeholders stand for; a member whose placeholder stands for nothing is left out."""
    if isinstance(tree, list):
        return [_filled(item, values) for item in tree]
    if isinstance(tree, dict):
        return {key: _filled(item, values) for key, item in tree.items() if _stands(item, values)}
    name = placeholder(tree) if isinstance(tree, str) else None
    return _lookup(name, values)[0] if name else tree


def _stands(tree: object, values: Values) -> bool:
    name = placeholder(tree) if isinstance(tree, str) else None
    return name is None or bool(_lookup(name, values))


def _lookup(name: str, values: Values) -> list[object]:
    """What a placeholder stands for, as a list of one, or of none."""
    found: object = values
    for step in name.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return []
        found = found[step]
    return [found]


def _object(arguments: Mapping[str, object], parameters: JsonSchema | None) -> str:
    return f"{{{', '.join(_members(arguments, parameters))}}}"


def _members(arguments: Mapping[str, object], parameters: JsonSchema | None) -> Iterator[str]:
    place = parameters_place(parameters)
    for key, value in arguments.items():
        typed = cast(value, place.member(key).types) if isinstance(value, str) else _json(value)
        yield f'"{quote(key)}": {typed}'


def _json(value: object) -> str:
    try:
        return write_json(value)
    except (ValueError, RecursionError) as error:
        raise Unparsable("no JSON") from error
