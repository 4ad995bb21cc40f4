"""A pytest plugin: the conformance kit for those who write a format.

    class TestMine(Conformance):
        format = MINE
        cases = "cases.jsonl"

runs every case of the file in every way, and the laws on the format. Random texts come from a seed, the
same in every run unless `--streamsieve-seed` says another; `--streamsieve-examples` says how many.
Nothing but pytest is needed. Every pytest run of every project that has streamsieve installed loads this
module, so it imports nothing until `Conformance` is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from streamsieve.parsers.conformance.format_tests import Conformance

__all__ = ["Conformance"]
EXAMPLES, SEED = 100, 0


def pytest_addoption(parser: pytest.Parser) -> None:
    """The kit's options."""
    group = parser.getgroup("streamsieve", "streamsieve conformance")
    group.addoption(
        "--streamsieve-examples",
        type=int,
        default=EXAMPLES,
        metavar="N",
        help="random texts for each law (%(default)s)",
    )
    group.addoption("--streamsieve-seed", type=int, default=SEED, metavar="N", help="seed of these (%(default)s)")


def __getattr__(name: str) -> object:
    if name != "Conformance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from streamsieve.parsers.conformance.format_tests import Conformance

    return Conformance
