"""Every reasoning parser with every tool parser: what fits is held to the laws, what does not is refused."""

from __future__ import annotations

from random import Random

import pytest

from streamsieve.parsers import registry
from streamsieve.parsers.conformance import laws, specimens
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.parsers.format import combine

SEED = 1
TOOLS = {name: format for format in registry.built_in() for name in format.tool_names}
REASONING = {name: format for format in registry.built_in() for name in format.reasoning_names}


@pytest.mark.parametrize("reasoning", REASONING)
def test_each_pair_keeps_the_laws_or_is_refused(reasoning: str) -> None:
    random = Random(SEED)
    thinking = REASONING[reasoning]
    for tool, calling in TOOLS.items():
        if (thinking.messages or calling.messages) and thinking is not calling:
            with pytest.raises(ConfigurationError) as refused:
                registry.select(tool_parser=tool, reasoning_parser=reasoning)
            assert "cannot work together" in str(refused.value)
            assert repr(reasoning) in str(refused.value)
            assert repr(tool) in str(refused.value)
            continue
        format = combine(thinking, calling)
        known = [*specimens.fragments(thinking), *specimens.fragments(calling)]
        for _ in range(2):
            text = specimens.reply(random, known)
            request, finish = specimens.request(random, format), random.choice(specimens.FINISHES)
            laws.one_answer(format, text, request, finish, [random.randint(1, 9)])
