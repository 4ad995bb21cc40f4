"""What is done with the body of the reply to a request of the Responses API."""

from __future__ import annotations

from functools import partial
from typing import Literal

from streamsieve.wire.body import Body, Whole
from streamsieve.wire.prepared import Prepared
from streamsieve.wire.responses import from_chat_whole, upstream_whole
from streamsieve.wire.responses.from_chat_stream import FromChatStream
from streamsieve.wire.responses.upstream_stream import UpstreamStream


def reply_body(kind: Literal["stream", "whole"], prepared: Prepared) -> Body:
    """The body of a reply that is a stream of events or one JSON object."""
    settings, request, asked = prepared.settings, prepared.request, prepared.asked
    speaks_it = prepared.upstream_api == "responses"
    if kind == "stream":
        return UpstreamStream(settings, request, asked) if speaks_it else FromChatStream(settings, request, asked)
    rewrite = upstream_whole.rewrite if speaks_it else from_chat_whole.rewrite
    return Whole(partial(rewrite, settings=settings, request=request, asked=asked), settings.max_body)
