"""The usage of a reply: what of it went into thinking."""

from __future__ import annotations

from collections.abc import Sequence

from streamsieve.wire.json_text import JsonObject

_DETAILS = "completion_tokens_details"


def with_reasoning_tokens(reply: JsonObject, counts: Sequence[int | None]) -> JsonObject:
    """`reply`, a chunk or a completion, with the sum of `counts` as its usage's `reasoning_tokens`.

    The very same object where there is nothing to add: it has no usage, the upstream has counted by
    itself, or one of the counts, which are one for each choice, is not known.
    """
    usage = reply.get("usage")
    known = [count for count in counts if count is not None]
    if not isinstance(usage, dict) or not known or len(known) < len(counts):
        return reply
    details = usage.get(_DETAILS)
    details = details if isinstance(details, dict) else {}
    if details.get("reasoning_tokens"):
        return reply
    return {**reply, "usage": {**usage, _DETAILS: {**details, "reasoning_tokens": sum(known)}}}
