"""Python literals as JSON, against Python's own reading of them (card: pythonic)."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsieve.parsers import registry
from streamsieve.parsers.arguments.json_text import MAX_NESTING
from streamsieve.parsers.format import Format
from streamsieve.parsers.reading import read
from streamsieve.parsers.request import Request

REQUEST = Request(parse_calls=True)


def pythonic() -> Format:
    format = registry.select(tool_parser="pythonic", reasoning_parser=None)
    assert format is not None
    return format


def argument(literal: str) -> Any:
    """What `literal` becomes as an argument; the very text where that is no call."""
    text = f"[f(x={literal}, y=1)]"
    results = []
    for pieces, whole in ((list(text), False), ([text], False), ([text], True)):
        message = read(pythonic(), pieces, REQUEST, whole=whole)
        results.append(message.tool_calls[0].arguments if message.tool_calls else message.content)
    if results[2] == text:  # broken: a stream may have begun the call
        return text
    assert results[0] == results[1] == results[2]
    arguments = json.loads(results[0] or "")
    assert list(arguments) == ["x", "y"] and arguments["y"] == 1  # noqa: PT018  # one fact: what follows is read too
    return arguments["x"]


LITERALS = [
    ("None", None),
    ("true", True),
    ("False", False),
    ("007", 7),
    ("0x1F", 31),
    ("-0b101", -5),
    ("0o17", 15),
    ("1_000", 1000),
    ("+2", 2),
    ("-0", 0),
    (".5", 0.5),
    ("5.", 5.0),
    ("1e3", 1000.0),
    ("-1.5E-2", -0.015),
    ("''", ""),
    ("'a\\'b\"c'", "a'b\"c"),
    ('"\\x41\\u00e9\\U0001F600\\101\\0"', "Aé😀A\0"),
    ('"\\ud83d\\ude00"', "😀"),
    ('"\\N{BULLET}"', "•"),
    ('"\\q\\d"', "\\q\\d"),
    ('"a\\\nb"', "ab"),
    ('"raw\nline"', "raw\nline"),
    ("'''it's \"x\"\n'''", 'it\'s "x"\n'),
    ('"""a "quoted" b"""', 'a "quoted" b'),
    ("r'\\d+\\''", "\\d+\\'"),
    ('R"\\n"', "\\n"),
    ("f'{{x}} y'", "{x} y"),
    ("u'x'", "x"),
    ("[]", []),
    ("()", []),
    ("{}", {}),
    ("(1)", 1),
    ("(1,)", [1]),
    ("(1, 2)", [1, 2]),
    ("{1, 2}", [1, 2]),
    ("{'a': 1, 2: [3, (4, 5)], None: {True: 'x'}}", {"a": 1, "2": [3, [4, 5]], "null": {"true": "x"}}),
    ("[ 'a' , [ ] , ]", ["a", []]),
    ("{'a': (1), 'b': ((2,), 3),}", {"a": 1, "b": [[2], 3]}),
]


@pytest.mark.parametrize(("literal", "value"), LITERALS)
def test_literals(literal: str, value: object) -> None:
    assert argument(literal) == value
    assert type(argument(literal)) is type(value)


NO_LITERALS = """
x | f(1) | 1 + 2 | 1-2 | f'{x}' | 'a' 'b' | b'x' | 1j | [1 2] | [1,,2] | [,] | (,) | {1: 2, 3} | {1, 2: 3} | {'a'}:
{[1]: 2} | 1e999 | 0x | 1__0 | '\\xZ' | '\\N{NO SUCH NAME}' | '\\UFFFFFFFF' | True.x | ] | [) | *a | not 1 | ...
"""


@pytest.mark.parametrize(
    "literal", [one.strip() for line in NO_LITERALS.split("\n") if line for one in line.split(" | ")]
)
def test_what_is_no_literal_breaks_the_call(literal: str) -> None:
    assert argument(literal) == f"[f(x={literal}, y=1)]"


def test_a_value_may_nest_so_deep_and_no_deeper() -> None:
    literal = "[" * MAX_NESTING + "]" * MAX_NESTING
    assert read(pythonic(), [f"[f(x={literal})]"], REQUEST).tool_calls[0].arguments == f'{{"x": {literal}}}'
    message = read(pythonic(), [f"[f(x=[{literal}])]"], REQUEST)
    assert [repair.rule for repair in message.repairs] == ["broken_call"]
    assert message.tool_calls[0].arguments == ""


def test_long_numbers_keep_their_digits() -> None:
    message = read(pythonic(), [f"[f(x={'9' * 10_000})]"], REQUEST)
    assert message.tool_calls[0].arguments == f'{{"x": {"9" * 10_000}}}'


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
values = st.recursive(
    leaves | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(texts | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(values)
def test_what_python_writes_is_read(value: object) -> None:
    """`repr` of any value that JSON can have comes back as `json` would write it."""
    assert argument(repr(value)) == json.loads(json.dumps(ast.literal_eval(repr(value))))
