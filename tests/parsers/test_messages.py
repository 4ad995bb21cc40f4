"""Message formats frame all three trays, by whichever of their names they are chosen."""

from __future__ import annotations

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.conformance.specimens import asked
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.reading import read
from streamsieve.parsers.results import Message, ToolCall

SAID = Message("why", "Hello.", [ToolCall("id", "ping", "{}")])
FORMATS = {format.name: format for format in registry.built_in() if format.messages}


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("names", ["both", "tool", "reasoning"])
def test_any_of_its_names_fills_all_trays(format, names):
    chosen = registry.select(
        tool_parser=format.tool_names[0] if names in ("both", "tool") else None,
        reasoning_parser=format.reasoning_names[0] if names in ("both", "reasoning") else None,
    )
    assert chosen is format
    message = read(chosen, [format.render(SAID, asked(format))], asked(format))
    assert (message.reasoning, message.content, message.tool_calls[0].name) == ("why", "Hello.", "ping")


@pytest.mark.parametrize(
    ("tool", "reasoning"), [("openai", "qwen3"), ("hermes", "openai_gptoss"), ("openai", "muse"), ("inkling", "beam")]
)
def test_with_another_it_is_refused_and_both_are_named(tool, reasoning):
    with pytest.raises(ConfigurationError) as refused:
        registry.select(tool_parser=tool, reasoning_parser=reasoning)
    assert repr(tool) in str(refused.value)
    assert repr(reasoning) in str(refused.value)
