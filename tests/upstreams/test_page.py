"""docs/upstreams.md says of each dialect what it sends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from streamsieve.wire.dialects import DIALECTS

PAGE = (Path(__file__).parents[2] / "docs" / "upstreams.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("upstream", DIALECTS)
def test_the_table(upstream: str) -> None:
    column = ROWS[0].index(upstream)
    said = {row[0]: row[column] for row in ROWS[2:]}
    dialect = DIALECTS[upstream]
    fields = {**dialect.raw_text, **dialect.end_tokens, **dialect.token_ids, **dialect.continuing}
    if dialect.calls == "raw":
        fields["tool_choice"] = dialect.tool_choice
    assert set(re.findall(r"`(\w+: [^`]+)`", " ".join(said.values()))) == {
        f"{name}: {json.dumps(value)}" for name, value in fields.items()
    }
    assert (f"`{dialect.reasoning_field}`" if dialect.reasoning_field else "as it is") == said["earlier reasoning"]
    assert bool(dialect.tag) == bool(said["structural tag"])
    assert all(f"<{source}>" in PAGE for source in dialect.sources)
