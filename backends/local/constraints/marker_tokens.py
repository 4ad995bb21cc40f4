"""A structural tag made exact for one vocabulary: where its literals hold the text of special tokens, the tokens.

A model that means a marker writes its one token, and a parser that is given token ids takes nothing else for it. So
the grammar asks for the token too. And a token that the grammar does not ask for is no part of any string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from streamsieve.backends.local.constraints.schema_lint import LOOK_AROUND
from streamsieve.backends.local.constraints.text_without import text_without
from streamsieve.backends.local.constraints.usable_schema import has_lengths, usable
from streamsieve.backends.local.constraints.vocabulary import Vocabulary
from streamsieve.parsers.tag_parts import JsonObject, either, literal, sequence

MAX_WHITESPACE = 8
"""Blanks that JSON may have at a place where the tag does not say: with no limit a model can go on with it for ever."""
_NESTING = 100


class TagFault(ValueError):
    """A structural tag has not the form that it must have."""


@dataclass
class MarkerTokens:
    """Makes one structural tag exact. `named`: the special tokens that it asks for, filled on the way.

    `barred`: text that may not stand in the free text of the tag though tokens begin its calls, which is for the mask
    to see to. `has_lengths`: whether it has strings of JSON with a least or a greatest length.
    """

    vocabulary: Vocabulary
    named: set[int] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    has_lengths: bool = False
    _stops: int = 0

    def exact(self, part: object, depth: int = 0) -> JsonObject:
        """`part` with tokens in it. Raises TagFault where it is none that can be."""
        if depth > _NESTING:
            raise TagFault(f"more than {_NESTING} formats within each other")
        if not isinstance(part, Mapping):
            raise TagFault(f"a format is an object, not {part!r:.80}")
        match part.get("type"):
            case "const_string":
                return self._literal(_text(part, "value"))
            case "sequence":
                return self._sequence(_list(part, "elements"), depth)
            case "or":
                return either(*(self.exact(one, depth + 1) for one in _list(part, "elements")))
            case "optional" | "plus" | "star" | "repeat":
                return self._repeated(part, depth)
            case "tag":
                return self._tag(part, depth)
            case "tags_with_separator":
                return self._separated(part, depth)
            case "triggered_tags":
                return self._triggered(part, depth)
            case "dispatch":
                return self._dispatch(part, depth)
            case "any_text":
                return self._any_text(part)
            case "regex" if LOOK_AROUND.search(_text(part, "pattern")):
                raise TagFault("look-around in a regular expression is not supported")
            case "json_schema" | "qwen_xml_parameter":
                return self._json(part)
            case "token":
                return self._token(part)
            case _:
                return dict(part)

    def _literal(self, text: str) -> JsonObject:
        return self._until_stop([self._piece(piece) for piece in self.vocabulary.split(text)] or [literal("")])

    def _any_text(self, part: Mapping[str, object]) -> JsonObject:
        """Text, which has no special tokens, so that those excluded are out already."""
        excludes = [one for one in _texts(part, "excludes") if one and not self._has_token(one)]
        if not excludes or part.keys() - {"type", "excludes"}:
            return dict(part) | {"excludes": excludes}
        return {"type": "grammar", "grammar": text_without(excludes)}

    def _json(self, part: Mapping[str, object]) -> JsonObject:
        schema = usable(part.get("json_schema"))
        self.has_lengths |= has_lengths(schema)
        made = {"max_whitespace_cnt": MAX_WHITESPACE} | dict(part) | {"json_schema": schema}
        if excludes := _texts(part, "excludes"):
            made["excludes"] = [one for one in excludes if not self._has_token(one)]
        return made

    def _has_token(self, text: str) -> bool:
        return any(isinstance(piece, int) for piece in self.vocabulary.split(text))

    def _piece(self, piece: str | int) -> JsonObject:
        if isinstance(piece, str):
            return literal(piece)
        self.named.add(piece)
        return {"type": "token", "token": piece}

    def _token(self, part: Mapping[str, object]) -> JsonObject:
        token = part.get("token")
        number = self.vocabulary.special.get(token) if isinstance(token, str) else token
        if not isinstance(number, int) or not 0 <= number < self.vocabulary.size:
            raise TagFault(f"token {token!r} is not in the vocabulary")
        return self._piece(number)

    def _until_stop(self, parts: Iterable[JsonObject]) -> JsonObject:
        """A sequence; a token that ends the reply ends it too, since xgrammar takes such tokens only at the end."""
        kept: list[JsonObject] = []
        for part in _flat(parts):
            if part["type"] == "token" and part["token"] in self.vocabulary.stops:
                self._stops += 1
                break
            kept.append(part)
        return sequence(*kept)

    def _sequence(self, parts: Sequence[object], depth: int) -> JsonObject:
        kept: list[JsonObject] = []
        for index, part in enumerate(parts):
            before = self._stops
            one = self.exact(part, depth + 1)
            if self._stops == before:
                kept.append(one)
                continue
            if one["type"] != "optional":  # nothing comes behind the end of a reply
                return sequence(*kept, one)
            behind = self._sequence(parts[index + 1 :], depth) if index + 1 < len(parts) else literal("")
            return sequence(*kept, either(cast(JsonObject, one["content"]), behind))
        return self._until_stop(kept)

    def _repeated(self, part: Mapping[str, object], depth: int) -> JsonObject:
        before = self._stops
        content = self.exact(part.get("content"), depth + 1)
        if self._stops == before:
            return dict(part) | {"content": content}
        may_be_none = part["type"] in ("optional", "star") or part.get("min") == 0
        return {"type": "optional", "content": content} if may_be_none else content

    def _tag(self, tag: Mapping[str, object], depth: int, without: str = "") -> JsonObject:
        """A tag as a sequence; `without`: what of its beginning is written already."""
        begin = tag.get("begin")
        if isinstance(begin, Mapping):
            beginning = self._token(begin)
        elif isinstance(begin, str) and begin.startswith(without):
            beginning = self._literal(begin[len(without) :])
        else:
            raise TagFault("the begin of a tag is a string that its trigger begins, or a token")
        return self._until_stop([beginning, self._closed(tag, depth)])

    def _closed(self, tag: Mapping[str, object], depth: int) -> JsonObject:
        """The content of a tag and its end. Text in it stops at an end of text, and before a token by itself."""
        content, end = self.exact(tag.get("content"), depth + 1), tag.get("end")
        if isinstance(end, Mapping):
            return sequence(content, self._token(end))
        ends = [end] if isinstance(end, str) else end
        if not isinstance(ends, Sequence) or not all(isinstance(one, str) for one in ends):
            raise TagFault("the end of a tag is a string, a list of strings or a token")
        literals = [self._literal(one) for one in ends]
        if all(one["type"] == "const_string" and one["value"] for one in literals):
            inner = _object(tag.get("content"))
            if inner.get("type") != "any_text":
                return {"type": "tag", "begin": "", "content": content, "end": list(ends)}
            content = self._any_text({**inner, "excludes": [*_texts(inner, "excludes"), *ends]})
        return self._until_stop([content, either(*literals)])

    def _separated(self, part: Mapping[str, object], depth: int) -> JsonObject:
        before = self._stops
        one = either(*(self._tag(_object(tag), depth) for tag in _list(part, "tags")))
        if part.get("stop_after_first") or self._stops > before:
            many = one
        else:
            more = self._until_stop([self._literal(_text(part, "separator")), one])
            many = sequence(one, {"type": "star", "content": more})
        return many if part.get("at_least_one") else {"type": "optional", "content": many}

    def _triggered(self, part: Mapping[str, object], depth: int) -> JsonObject:
        tags = [_object(tag) for tag in _list(part, "tags")]
        before = self._stops
        rules: list[tuple[str, JsonObject]] = []
        for trigger in _texts(part, "triggers"):
            own = [self._tag(tag, depth, trigger) for tag in tags if str(tag.get("begin", "")).startswith(trigger)]
            if own:
                rules.append((trigger, either(*own)))
        if not rules:
            raise TagFault("no tag begins with one of the triggers")
        once = bool(part.get("stop_after_first")) or self._stops > before
        free = self._free(rules, _texts(part, "excludes"), loop=not once)
        if not part.get("at_least_one"):
            return free
        first = either(*(self._tag(tag, depth) for tag in tags))
        return first if once else sequence(first, free)

    def _dispatch(self, part: Mapping[str, object], depth: int) -> JsonObject:
        rules = []
        for rule in _list(part, "rules"):
            if not isinstance(rule, Sequence) or len(rule) != 2 or not isinstance(rule[0], str):
                raise TagFault("a rule of a dispatch is a pattern and a format")
            rules.append((rule[0], self.exact(rule[1], depth + 1)))
        return self._free(rules, _texts(part, "excludes"), loop=part.get("loop") is not False)

    def _free(self, rules: Sequence[tuple[str, JsonObject]], excludes: Sequence[str], *, loop: bool) -> JsonObject:
        """Text that is free until the pattern of a rule; what is excluded by text is free of tokens."""
        first = {pattern: next(self.vocabulary.split(pattern), "") for pattern, _ in rules}
        if not any(isinstance(one, int) for one in first.values()):
            texts = [one for one in excludes if not self._has_token(one)]
            return {"type": "dispatch", "rules": [list(rule) for rule in rules], "loop": loop, "excludes": texts}
        by_token: dict[int, list[JsonObject]] = {}
        for pattern, content in rules:
            token, *rest = self.vocabulary.split(pattern)
            if isinstance(token, str):
                self.barred.add(pattern)  # xgrammar looks for tokens or for text, not for both
                continue
            self.named.add(token)
            by_token.setdefault(token, []).append(sequence(*map(self._piece, rest), content))
        special = self.vocabulary.special
        self.barred.update(one for one in excludes if not self._has_token(one))
        return {
            "type": "token_dispatch",
            "rules": [[token, either(*contents)] for token, contents in by_token.items()],
            "loop": loop,
            "exclude_tokens": [special[one] for one in excludes if one in special and special[one] not in by_token],
        }


def _flat(parts: Iterable[JsonObject]) -> Iterable[JsonObject]:
    for part in parts:
        if part["type"] == "sequence":
            yield from cast("list[JsonObject]", part["elements"])
        else:
            yield part


def _object(part: object) -> Mapping[str, object]:
    if not isinstance(part, Mapping):
        raise TagFault(f"a tag is an object, not {part!r:.80}")
    return part


def _list(part: Mapping[str, object], key: str) -> list[object]:
    value = part.get(key)
    if not isinstance(value, list | tuple) or not value:
        raise TagFault(f"{part.get('type')}: {key} is a list that is not empty")
    return list(value)


def _texts(part: Mapping[str, object], key: str) -> list[str]:
    value = part.get(key, [])
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise TagFault(f"{part.get('type')}: {key} is a list of strings")
    return list(value)


def _text(part: Mapping[str, object], key: str) -> str:
    value = part.get(key)
    if not isinstance(value, str):
        raise TagFault(f"{part.get('type')}: {key} is a string")
    return value
