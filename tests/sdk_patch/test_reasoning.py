"""`reasoning` reads the tray under either of its names, from whatever the SDK hands out."""

from __future__ import annotations

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.chat_completion_chunk import ChoiceDelta

from streamsieve.sdk_patch import reasoning


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"reasoning": "a"}, "a"),
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "a", "reasoning_content": "b"}, "a"),
        ({"reasoning": None, "reasoning_content": "b"}, "b"),
        ({"reasoning": "", "reasoning_content": "b"}, "b"),
        ({"reasoning": {"effort": "low"}}, None),
        ({"reasoning": ""}, None),
        ({}, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [ChatCompletionMessage, ChoiceDelta, dict])
def test_the_tray_under_either_name(kind, fields, found):
    given = {"role": "assistant", "content": None, **fields}
    assert reasoning(given if kind is dict else kind.model_validate(given)) == found
