"""What is done with the body of the reply to a request of the Responses API."""

from __future__ import annotations

from functools import partial
from typing import Literal

from streamsieve.wire.body import Body, Whole
from streamsieve.wire.request.prepared import Prepared
from streamsieve.wire.responses import from_chat_whole, upstream_whole
from streamsieve.wire.responses.from_chat_stream import FromChatStream
from streamsieve.wire.responses.upstream_stream import UpstreamStream


def reply_body(kind: Literal["stream", "whole"], prepared: Prepared) -> Body:
    """The body of a reply that is a stream of events or one JSON object."""
    has_the_api = prepared.upstream_api == "responses"
    if kind == "stream":
        return UpstreamStream(prepared) if has_the_api else FromChatStream(prepared)
    rewrite = upstream_whole.rewrite if has_the_api else from_chat_whole.rewrite
    return Whole(partial(rewrite, prepared=prepared), prepared.settings.max_body)
