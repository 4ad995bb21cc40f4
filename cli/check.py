"""`streamsieve check`: the cases of the files, each parsed whole, character by character and at every cut."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamsieve.cli.parser_options import Commands
from streamsieve.parsers.conformance import cases
from streamsieve.parsers.conformance.cases import Case, CaseError, Difference, Failure
from streamsieve.parsers.errors import ConfigurationError


def add(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser(
        "check",
        help="run case files: whole, character by character, at every cut",
        description="Exits 1 where a case fails, 2 where a file cannot be read.",
    )
    command.set_defaults(run=run)
    command.add_argument("files", metavar="CASES.jsonl", nargs="+", type=Path)
    command.add_argument(
        "--known", action="store_true", help="leave out cases whose parsers are not installed, instead of failing them"
    )


def run(options: argparse.Namespace) -> int:
    """Print a table of the files, then what failed."""
    results = [_check(path, loaded, options.known) for path, loaded in _loaded(options.files)]
    _print_table(results)
    for result in results:
        for failures in result.failures:
            _print_failures(result.path, failures)
    return 1 if any(result.failures for result in results) else 0


@dataclass(slots=True)
class _Result:
    """What became of one file's cases. `failures`: one list for each case that failed."""

    path: Path
    cases: int = 0
    ways: int = 0
    left_out: int = 0
    failures: list[Sequence[Failure]] = field(default_factory=list)

    def row(self) -> tuple[str, ...]:
        return (str(self.path), *map(str, (self.cases, self.ways, self.left_out, len(self.failures))))


def _loaded(paths: Sequence[Path]) -> Sequence[tuple[Path, Sequence[Case]]]:
    """Every file read before the first case is run."""
    try:
        return [(path, list(cases.load(path))) for path in paths]
    except OSError as error:
        raise ConfigurationError(f"{error.filename}: {error.strerror}") from error
    except CaseError as error:
        raise ConfigurationError(str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"a case file is not UTF-8: {error}") from error


def _check(path: Path, loaded: Sequence[Case], known_only: bool) -> _Result:
    result = _Result(path)
    for case in loaded:
        try:
            case.format()
        except ConfigurationError as error:
            if known_only:
                result.left_out += 1
                continue
            failures = [Failure(case, "no way", (Difference("error", None, str(error)),))]
        else:
            failures = list(cases.check(case))
            result.ways += sum(1 for _ in cases.ways(case))
        result.cases += 1
        if failures:
            result.failures.append(failures)
    return result


def _print_table(results: Sequence[_Result]) -> None:
    rows = [("file", "cases", "ways", "left out", "failed"), *(result.row() for result in results)]
    if len(results) > 1:
        totals = ((r.cases, r.ways, r.left_out, len(r.failures)) for r in results)
        rows.append(("all", *(str(sum(column)) for column in zip(*totals, strict=True))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        cells = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
        print("  ".join((name.ljust(widths[0]), *cells)))


def _print_failures(path: Path, failures: Sequence[Failure]) -> None:
    first = failures[0]
    more = f" (and {len(failures) - 1} more ways)" if len(failures) > 1 else ""
    print(f"\n{path}: {first.case.id}: {first.way}{more}")
    for difference in first.differences:
        if difference.tray == "error":
            print(f"  {difference.got}")
        else:
            print(f"  {difference.tray}\n    expected {difference.expected!r}\n    got      {difference.got!r}")
