"""`streamsieve parse`, as a command: text or case lines in, JSON lines out."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamsieve.cli.main import main
from streamsieve.parsers.conformance import cases
from streamsieve.parsers.format import Format
from streamsieve.parsers.results import Message

THINK = "<think>\nWhy.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "São Luís"}}\n</tool_call>'
BROKEN = '<tool_call>\n{"name": "f", "arguments": {"a": 1,, }}\n</tool_call>'
QWEN = "<tool_call>\n<function=f>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}}]
HERMES = ("--tool-parser", "hermes", "--reasoning-parser", "qwen3")


class Command:
    """Runs the command in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        self._monkeypatch = monkeypatch
        self._captured = capsysbinary
        self.errors = ""

    def __call__(self, *arguments: str, stdin: str | bytes = "", status: int = 0) -> list[dict[str, Any]]:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert main(["parse", *arguments]) == status
        captured = self._captured.readouterr()
        self.errors = captured.err.decode()
        return [json.loads(line) for line in captured.out.splitlines()]

    def one(self, *arguments: str, stdin: str | bytes = "") -> dict[str, Any]:
        (result,) = self(*arguments, stdin=stdin)
        for call in result["tool_calls"]:
            assert call.pop("id").startswith("chatcmpl-tool-")
        return result


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(monkeypatch, capsysbinary)


@pytest.mark.parametrize("chunk", [(), ("--chunk", "whole"), ("--chunk", "char"), ("--chunk", "7")])
def test_text_to_one_result(parse: Command, chunk: tuple[str, ...]) -> None:
    assert parse.one(*HERMES, *chunk, stdin=THINK + "Hi.\n" + CALL) == {
        "reasoning": "Why.",
        "content": "Hi.",
        "tool_calls": [{"name": "get_tide", "arguments": '{"port": "São Luís"}'}],
        "finish_reason": "tool_calls",
        "repairs": [],
    }


def test_a_file_byte_for_byte(parse: Command, tmp_path: Path) -> None:
    file = tmp_path / "reply.txt"
    file.write_bytes(b" a\r\nb\rc\n\xef\xbb\xbf ")
    assert parse.one(str(file))["content"] == " a\r\nb\rc\n\ufeff "
    assert parse.one("-", stdin="x")["content"] == "x"


def test_without_a_parser_all_is_content(parse: Command) -> None:
    result = parse.one("--tool-parser", "none", stdin=THINK + CALL)
    assert (result["content"], result["tool_calls"], result["finish_reason"]) == (THINK + CALL, [], "stop")
    assert parse.one(stdin="")["content"] is None


@pytest.mark.parametrize("spelling", ["--tool-parser", "--tool-call-parser"])
def test_values_without_and_with_a_schema(parse: Command, tmp_path: Path, spelling: str) -> None:
    def arguments(*more: str) -> object:
        return json.loads(parse.one(spelling, "qwen3_coder", *more, stdin=QWEN)["tool_calls"][0]["arguments"])

    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    assert arguments() == {"n": "3"}
    assert arguments("--tools", str(tools)) == {"n": 3}


def test_a_request_that_offers_no_tools(parse: Command, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text("[]")
    assert parse.one(*HERMES, "--tools", str(tools), stdin=THINK + CALL)["content"] == CALL


def test_the_prompts_tail(parse: Command) -> None:
    options = ("--reasoning-parser", "qwen3")
    assert parse.one(*options, stdin="a")["reasoning"] == "a"
    assert parse.one(*options, "--prompt-tail", "<think>\n\n</think>\n\n", stdin="a")["content"] == "a"


def test_how_the_engine_ended(parse: Command) -> None:
    cut = CALL[: CALL.index("Lu")]
    result = parse.one(*HERMES, "--finish", "length", "--chunk", "5", stdin=THINK + cut)
    assert result["tool_calls"] == [{"name": "get_tide", "arguments": '{"port": "São '}]
    assert (result["finish_reason"], result["repairs"]) == ("length", [{"offset": len(THINK), "rule": "cut_call"}])


@pytest.mark.parametrize(
    ("options", "streamed"),
    [
        (("--chunk", "whole"), False),
        (("--chunk", "char"), True),
        (("--chunk", "char", "--deliver", "complete"), False),
        (("--chunk", "char", "--deliver", "stream"), True),
    ],
)
def test_a_call_that_breaks(parse: Command, options: tuple[str, ...], streamed: bool) -> None:
    result = parse.one("--tool-parser", "hermes", *options, stdin=BROKEN)
    assert [call["name"] for call in result["tool_calls"]] == (["f"] if streamed else [])
    assert (result["content"] is None) == streamed
    assert [repair["rule"] for repair in result["repairs"]] == ["broken_call"]


def test_case_lines_bring_their_own(parse: Command) -> None:
    case = {"id": "a", "tool_parser": "hermes", "reasoning_parser": None, "tools": TOOLS, "engine_finish": "stop"}
    lines: list[dict[str, Any]] = [
        {**case, "raw": CALL},
        {**case, "id": "b", "raw": CALL, "tools": None},
        {**case, "id": "c", "raw": CALL, "request": {"tool_choice": "none"}},
        {**case, "id": "d", "raw": CALL, "engine_finish": "length"},
        {**case, "id": "e", "raw": "x</think>y", "reasoning_parser": "qwen3", "prompt_tail": "<think>"},
        {**case, "id": "f", "raw": THINK, "reasoning_parser": "qwen3", "request": {"include_reasoning": False}},
    ]
    results = parse("--jsonl", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert [list(result) for result in results] == [
        ["id", "reasoning", "content", "tool_calls", "finish_reason", "repairs"]
    ] * len(lines)
    assert [
        (r["id"], r["reasoning"], r["content"], [call["name"] for call in r["tool_calls"]], r["finish_reason"])
        for r in results
    ] == [
        ("a", None, None, ["get_tide"], "tool_calls"),
        ("b", None, CALL, [], "stop"),
        ("c", None, CALL, [], "stop"),
        ("d", None, None, ["get_tide"], "length"),
        ("e", "x", "y", [], "stop"),
        ("f", None, None, [], "stop"),
    ]


@pytest.mark.parametrize(
    ("options", "streamed"),
    [((), True), (("--chunk", "whole"), False), (("--chunk", "1"), True), (("--deliver", "complete"), False)],
)
def test_a_cases_own_chunks_are_the_deltas(parse: Command, options: tuple[str, ...], streamed: bool) -> None:
    case = {"id": "a", "tool_parser": "hermes", "tools": TOOLS, "chunks": [BROKEN[:50], BROKEN[50:]]}
    (result,) = parse("--jsonl", *options, stdin=json.dumps(case))
    assert len(result["tool_calls"]) == streamed


def test_raw_without_chunks_is_parsed_whole(parse: Command) -> None:
    (result,) = parse("--jsonl", stdin=json.dumps({"id": "a", "tool_parser": "hermes", "tools": TOOLS, "raw": BROKEN}))
    assert (result["tool_calls"], result["content"]) == ([], BROKEN)


BAD_LINES = [
    (b"nope", None),
    (b"\xff", None),
    (b"[]", None),
    (b'"x"', None),
    (b"[" * 100_000, None),
    (b"{}", None),
    (b'{"id": "a"}', "a"),
    (b'{"id": "a", "raw": 1}', "a"),
    (b'{"id": "a", "chunks": ["x", 1]}', "a"),
    (b'{"id": "a", "raw": "x", "request": []}', "a"),
    (b'{"id": "a", "raw": "x", "tool_parser": "hermse"}', "a"),
    (b'{"id": "a", "raw": "x", "tool_parser": 1}', "a"),
    (b'{"id": 7, "raw": 1}', 7),
]


@pytest.mark.parametrize(("line", "id"), BAD_LINES)
def test_a_bad_line_is_told_and_the_rest_goes_on(parse: Command, line: bytes, id: object) -> None:
    good = b'{"id": "good", "raw": "x"}'
    first, bad, last = parse("--jsonl", stdin=b"\n".join([good, line, b"  ", good]))
    assert (first["content"], last["content"]) == ("x", "x")
    assert set(bad) == {"id", "error"}
    assert bad["id"] == id
    assert isinstance(bad["error"], str)


def test_a_parser_that_raises_is_told_and_the_rest_goes_on(parse: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(case: cases.Case, way: cases.Way, format: Format | None, *, deliver: str) -> Message:
        if case.id == "bad":
            raise ZeroDivisionError
        return Message(content=case.raw)

    monkeypatch.setattr(cases, "run", run)
    lines = (json.dumps({"id": name, "raw": "x"}) for name in ("good", "bad", "good"))
    first, bad, last = parse("--jsonl", stdin="\n".join(lines))
    assert (first["content"], last["content"]) == ("x", "x")
    assert bad == {"id": "bad", "error": "the parser raised ZeroDivisionError()"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tool-parser", "hermse"), "hermes"),
        (("/nowhere/at/all",), "/nowhere/at/all"),
        (("--tools", "/nowhere/at/all"), "/nowhere/at/all"),
        (("--tools", __file__), "tools"),
    ],
)
def test_what_cannot_work_is_status_2(parse: Command, arguments: tuple[str, ...], says: str) -> None:
    assert parse(*arguments, status=2) == []
    assert says in parse.errors


def test_bytes_that_are_no_text_are_status_2(parse: Command) -> None:
    assert parse(stdin=b"ab\xff", status=2) == []
    assert "byte 2" in parse.errors


@pytest.mark.parametrize("arguments", [("--chunk", "0"), ("--chunk", "-1"), ("--chunk", "some"), ("--finish", "x")])
def test_a_wrong_command_line_is_status_2(parse: Command, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as exit:
        parse(*arguments)
    assert exit.value.code == 2


BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def test_output_is_utf8_whatever_the_locale_and_goes_out_line_by_line() -> None:
    """As a co-process: each line is answered before the next is written; half a surrogate pair stays escaped."""
    command = [sys.executable, "-m", "streamsieve.cli", "parse", "--jsonl"]
    environment = {**BUFFERED, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for raw, written in (("é😀", "é😀".encode()), ("\ud800", b"\\ud800")):
            process.stdin.write(json.dumps({"id": "a", "raw": raw}).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            assert written in line
            assert json.loads(line)["content"] == raw
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    command = [sys.executable, "-m", "streamsieve.cli", "parse", "--jsonl"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=BUFFERED, **pipes) as process:  # type: ignore[call-overload]
        process.stdout.close()
        process.stdin.write(b'{"id": "a", "raw": "x"}\n' * 10)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(10) == 141
