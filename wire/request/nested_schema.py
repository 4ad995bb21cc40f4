"""A JSON schema as it has to be within another, where `#` is somebody else's root."""

from __future__ import annotations

from collections.abc import Mapping

from streamsieve.parsers.request import JsonSchema
from streamsieve.wire.json_text import JsonObject

_DEFINITIONS = ("$defs", "definitions")


class NestedSchema:
    """`schema` within another schema, whose `$defs` take its definitions under names that begin with `owner`.

    `body` stands in its place; `definitions` are for the root. A reference to a definition leads to where that is
    now; one to anything else of the schema, or to all of it, makes the whole a definition.
    """

    def __init__(self, owner: str, schema: JsonSchema) -> None:
        self._prefix = f"{owner}." if owner else ""
        self._own = {key: found for key in _DEFINITIONS if isinstance(found := schema.get(key), Mapping)}
        self._refers_to_itself = False
        self.definitions: JsonObject = {
            self._prefix + name: self._rewritten(one) for found in self._own.values() for name, one in found.items()
        }
        whole = {key: self._rewritten(value) for key, value in schema.items() if key not in self._own}
        self.body = whole
        if self._refers_to_itself:
            self.definitions[f"{self._prefix}all"] = whole
            self.body = {"$ref": self._whole}

    @property
    def _whole(self) -> str:
        return f"#/$defs/{_token(self._prefix)}all"

    def _rewritten(self, value: object) -> object:
        if isinstance(value, Mapping):
            return {
                key: self._reference(one) if key == "$ref" and isinstance(one, str) else self._rewritten(one)
                for key, one in value.items()
            }
        return [self._rewritten(one) for one in value] if isinstance(value, list) else value

    def _reference(self, pointer: str) -> str:
        """A JSON pointer (RFC 6901) of the schema as one of the root; references to other documents stay."""
        if pointer != "#" and not pointer.startswith("#/"):
            return pointer
        match pointer.split("/", 3):
            case [_, key, name, *rest] if _text(name) in self._own.get(key, ()):
                return "/".join(["#/$defs", _token(self._prefix) + name, *rest])
        self._refers_to_itself = True
        return self._whole + pointer[1:]


def nests_deeper(schema: object, levels: int) -> bool:
    """Whether there are more objects and lists within one another in `schema` than that."""
    level = [schema]
    for _ in range(levels + 1):
        within: list[object] = []
        for one in level:
            within += one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ()
        if not within:
            return False
        level = within
    return True


def _token(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


def _text(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")
