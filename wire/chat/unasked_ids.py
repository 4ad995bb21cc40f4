"""Token ids that only we asked the upstream for."""

from __future__ import annotations

from streamsieve.wire.json_text import JsonObject

_IDS = frozenset({"token_ids", "prompt_token_ids"})
"""vLLM has those of the prompt in a chat completion and its first chunk, and in each choice of a completion."""


def without_ids(holder: JsonObject) -> JsonObject:
    """A reply, a chunk or a choice of one, without token ids; the very same object where it has none."""
    if _IDS.isdisjoint(holder):
        return holder
    return {name: value for name, value in holder.items() if name not in _IDS}
