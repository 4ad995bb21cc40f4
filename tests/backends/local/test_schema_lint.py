"""Each thing that the lint tells of is passed over by xgrammar, as an instance that breaks it proves."""

from __future__ import annotations

import json

import jsonschema
import pytest
import xgrammar

from streamsieve.backends.local.constraints.schema_lint import ignored

Schema = dict[str, object]


def typed(kind: str, **more: object) -> Schema:
    return {"type": kind, **more}


def properties(**more: object) -> Schema:
    return {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, **more}


PASSED_OVER: list[tuple[Schema, object, str]] = [
    (typed("string", **{"not": {"const": "a"}}), "a", "not"),
    (properties(**{"if": {"required": ["a"]}, "then": {"required": ["b"]}}), {"a": 1}, "if"),
    (properties(dependentRequired={"a": ["b"]}), {"a": 1}, "dependentRequired"),
    (properties(dependentSchemas={"a": {"required": ["b"]}}), {"a": 1}, "dependentSchemas"),
    (typed("array", items={"type": "integer"}, uniqueItems=True), [1, 1], "uniqueItems"),
    ({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a", "type": "integer"}}}, "x", "$dynamicRef"),
    (
        {"allOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 5}]},
        9,
        "allOf with more than one schema",
    ),
    (
        {"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 3}]},
        5,
        "oneOf (it counts as anyOf)",
    ),
    (
        {"type": "integer", "minimum": 3, "anyOf": [{"type": "integer"}, {"type": "null"}]},
        1,
        "what stands beside anyOf",
    ),
    ({"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": {"type": "integer"}}}, 1, "what stands beside $ref"),
    ({"type": "integer", "enum": [1, "a"]}, "a", "what stands beside enum"),
    ({"enum": [1, 5], "minimum": 3}, 1, "what stands beside enum"),
    ({"type": "integer", "const": "a"}, "a", "what stands beside const"),
    (
        properties(required=["a"], allOf=[{"required": ["a"]}]),
        {"a": "x"},
        "what stands beside allOf",
    ),
    (
        {"$ref": "#a", "$defs": {"a": {"$anchor": "a", "type": "integer"}}},
        "x",
        "$ref to what is not in the schema by its path",
    ),
    ({"minimum": 3}, 1, "minimum without type: number"),
    ({"maxLength": 1}, "aa", "maxLength without type: string"),
    ({"pattern": "^a$"}, "b", "pattern without type: string"),
    ({"minItems": 2}, [1], "minItems without type: array"),
    ({"maxProperties": 0}, {"a": 1}, "maxProperties without type: object"),
    ({"propertyNames": {"maxLength": 1}}, {"aa": 1}, "propertyNames without type: object"),
    (typed("string", format="idn-email"), "no address", "format that xgrammar does not know"),
    (typed("string", pattern="^1", format="date"), "2020-01-01", "pattern beside format"),
    (typed("string", pattern="^a+$", maxLength=3), "aaaa", "maxLength beside pattern"),
    (typed("string", format="date", minLength=30), "2020-01-01", "minLength beside format"),
    (typed("string", pattern="^(?!a).*$"), "a", "look-around in pattern"),
    (typed("number", multipleOf=0.5), 0.3, "multipleOf of a number"),
    (typed("integer", multipleOf=2000), 3, "multipleOf above 1024"),
    (typed("integer", multipleOf=3, minimum=10), 13, "multipleOf beside a minimum or maximum"),
    (
        typed("array", items={"type": "integer"}, contains={"type": "integer", "minimum": 5}),
        [1],
        "contains beside items or prefixItems",
    ),
    (properties(required=["c"]), {"a": 1}, "required of a property that is not in properties"),
    (
        properties(patternProperties={"^a": {"type": "integer", "minimum": 5}}),
        {"a": 1},
        "patternProperties beside properties",
    ),
    (
        {"type": "object", "properties": {"aaa": {"type": "integer"}}, "propertyNames": {"maxLength": 2}},
        {"aaa": 1},
        "propertyNames beside properties",
    ),
]

KEPT: list[tuple[Schema, object]] = [
    (typed("integer", minimum=3), 1),
    (typed("integer", exclusiveMaximum=3), 3),
    (typed("integer", multipleOf=3), 4),
    (typed("string", pattern="^a+$"), "b"),
    (typed("string", maxLength=3), "aaaa"),
    (typed("string", format="date"), "x"),
    (typed("string", enum=["a", "b"]), "c"),
    (typed("array", items={"type": "integer"}, maxItems=1), [1, 2]),
    (typed("array", contains={"type": "integer"}), ["x"]),
    (typed("array", prefixItems=[{"type": "integer"}]), ["a"]),
    (typed("object", propertyNames={"maxLength": 2}), {"aaaa": 1}),
    (typed("object", patternProperties={"^a": {"type": "integer"}}, additionalProperties=False), {"ab": "x"}),
    (properties(required=["a"], minProperties=2), {"a": 1}),
    (properties(additionalProperties=False), {"c": 1}),
    ({"properties": {"not": {"type": "integer"}}, "required": ["not"]}, {}),
    ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "x"),
    (
        {
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]} for kind in ("a", "b")
            ]
        },
        {"kind": "c"},
    ),
    ({"$ref": "#/$defs/a", "description": "one", "$defs": {"a": {"type": "integer"}}}, "x"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x"),
]


@pytest.fixture(scope="module")
def compiler() -> xgrammar.GrammarCompiler:
    texts = [bytes([code]) for code in range(256)]
    info = xgrammar.TokenizerInfo([*texts, b"</s>"], xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
    return xgrammar.GrammarCompiler(info, max_threads=1)


def takes(compiler: xgrammar.GrammarCompiler, schema: Schema, instance: object) -> bool:
    part = {"type": "json_schema", "json_schema": schema}
    matcher = xgrammar.GrammarMatcher(compiler.compile_structural_tag({"type": "structural_tag", "format": part}))
    return bool(matcher.accept_string(json.dumps(instance)) and matcher.is_completed())


def is_broken(schema: Schema, instance: object) -> bool:
    checker = jsonschema.FormatChecker()
    return not jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(instance)


@pytest.mark.parametrize(
    ("schema", "instance", "what"), PASSED_OVER, ids=lambda one: one if isinstance(one, str) else ""
)
def test_what_is_passed_over(compiler: xgrammar.GrammarCompiler, schema: Schema, instance: object, what: str) -> None:
    assert what in [one.what for one in ignored(schema)]
    assert takes(compiler, schema, instance)
    assert is_broken(schema, instance)


@pytest.mark.parametrize(("schema", "instance"), KEPT, ids=str)
def test_what_is_kept(compiler: xgrammar.GrammarCompiler, schema: Schema, instance: object) -> None:
    assert list(ignored(schema)) == []
    assert not takes(compiler, schema, instance)
    assert is_broken(schema, instance)


def test_a_remote_schema(compiler: xgrammar.GrammarCompiler) -> None:
    schema: Schema = {"$ref": "https://example.com/a.json"}
    assert [one.what for one in ignored(schema)] == ["$ref to what is not in the schema by its path"]
    assert takes(compiler, schema, "anything")


@pytest.mark.parametrize("pattern", ['^a"z$', "^a\\\\z$", "^a\\nz$", '^a["]z$', "^a\\u0022z$", "^a\\tz$"])
def test_patterns_that_would_break_json(compiler: xgrammar.GrammarCompiler, pattern: str) -> None:
    schema = typed("string", pattern=pattern)
    assert [one.what for one in ignored(schema)] == ["pattern with a character that JSON escapes"]
    part = {"type": "json_schema", "json_schema": schema}
    matcher = xgrammar.GrammarMatcher(compiler.compile_structural_tag({"type": "structural_tag", "format": part}))
    taken = [letter for letter in '"\\\n\t' if matcher.accept_string(f'"a{letter}z"')]
    assert len(taken) == 1
    with pytest.raises(json.JSONDecodeError):
        json.loads(f'"a{taken[0]}z"')


@pytest.mark.parametrize("pattern", ['^[^"]*$', "^a.b$", "^\\d+$", "^[^\\\\\\n]+$"])
def test_patterns_that_do_not(pattern: str) -> None:
    assert list(ignored(typed("string", pattern=pattern))) == []


def test_where_it_is() -> None:
    schema = {"type": "object", "properties": {"a/b": {"type": "array", "items": {"not": {}}}}}
    assert [(one.pointer, one.what) for one in ignored(schema)] == [("/properties/a~1b/items", "not")]


def test_names_and_values_are_no_keywords() -> None:
    schema = {"type": "object", "properties": {"not": {"const": {"uniqueItems": True}}, "if": {"default": {"not": 1}}}}
    assert list(ignored(schema)) == []


def test_deep_and_circular_data_end() -> None:
    deep: Schema = {}
    for _ in range(5000):
        deep = {"items": deep}
    assert list(ignored(deep)) == []
