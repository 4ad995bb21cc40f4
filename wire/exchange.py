"""One HTTP exchange of a completion, without I/O."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial

from streamsieve.wire import json_text
from streamsieve.wire.body import Body, Mode, Piped, Untouched, Whole
from streamsieve.wire.chat.stream import ChatStream
from streamsieve.wire.chat.whole import rewrite
from streamsieve.wire.completions import reply as completions
from streamsieve.wire.observing.observed import ObservedBody
from streamsieve.wire.observing.observers import tell
from streamsieve.wire.observing.shadow import ShadowStream, compare_whole
from streamsieve.wire.request.preparation import prepare
from streamsieve.wire.request.prepared import Headers, Prepared
from streamsieve.wire.request.refusal import Refused
from streamsieve.wire.responses.reply_body import reply_body
from streamsieve.wire.settings import Settings

_OF_THE_OLD_BODY = frozenset({b"content-length", b"etag", b"digest", b"content-digest", b"repr-digest", b"content-md5"})


class Exchange:
    """The shell hands in what it moves, and sends on what comes back.

    Called in this order: `start` once, `feed` for each piece of the response body, `close` when it has
    ended; `aclose` always, in the end. Only a completion with status 200, not compressed, in reply
    to a request that is a JSON object, is rewritten. What a stage raises leaves `feed` and `close`;
    nothing that the request or the response holds raises.

    In mode "whole" the shell sends nothing before `feed` or `close` has returned bytes: the length is
    known only then. `close` returns the body. `feed` returns bytes only where the body proves longer
    than `max_body`: all of it so far, unparsed; from then on the mode is "pass".
    """

    def __init__(
        self, settings: Settings, request_body: bytes, *, path: str = "/chat/completions", headers: Headers = ()
    ) -> None:
        """`path`, `headers`: the client's, the path without its query."""
        self.request_body = request_body
        """What the upstream is sent: the very bytes of the client, where nothing had to be changed."""
        self.request_path = path
        """Where the upstream is asked."""
        self.refusal: Refused | None = None
        """A request that cannot be served: the shell answers with it, and asks nobody else."""
        self._body: Body = Untouched()
        self._prepared = None
        self._started = time.perf_counter()
        try:
            self._prepared = prepared = prepare(settings, path, headers, request_body)
        except Refused as refusal:
            self.refusal = refusal
            return
        if prepared is None:
            return
        self.request_path = prepared.path
        if prepared.changed:
            self.request_body = json_text.encode(prepared.body)

    @property
    def mode(self) -> Mode:
        """What happens to the response body; "pass" until `start`."""
        return self._body.mode

    def prompt_ended_in(self, tail: str) -> None:
        """What the rendered prompt ended in, from an application that has rendered it; before `start`.

        Such an application knows that we are here, and sends token ids for us.
        """
        prepared = self._prepared
        if prepared is not None:
            prepared.request = replace(prepared.request, prompt_tail=tail)
            prepared.keep_ids = prepared.asked.get("return_token_ids") is True

    def start(self, status: int, headers: Headers) -> list[tuple[bytes, bytes]]:
        """The headers for the client; in mode "whole" the shell adds the content-length."""
        kind = _kind(status, headers)
        prepared = self._prepared
        if prepared is not None and prepared.record is not None:
            prepared.record.status, prepared.record.mode = status, kind
        if kind == "pass" or prepared is None:
            return list(headers)
        if prepared.settings.shadow and prepared.api == prepared.upstream_api == "responses":
            return list(headers)
        self._body = reply_body(kind, prepared) if prepared.api == "responses" else _chat_body(kind, prepared)
        if prepared.prompt is not None:
            self._body = _of_completions(self._body, prepared.settings.max_body)
        if prepared.record is not None:
            self._body = ObservedBody(self._body, prepared.record, self._started)
        return [(name, value) for name, value in headers if name not in _OF_THE_OLD_BODY]

    def feed(self, data: bytes) -> Coroutine[object, object, bytes]:
        """What the client gets for the next piece of the response body; in a stream, whole events."""
        return self._body.feed(data)

    async def close(self) -> bytes:
        """The upstream ended its body as it should. Returns the rest for the client; called again, nothing."""
        return await self._body.close()

    async def break_off(self) -> bytes:
        """The upstream failed within its body. Returns what tells the client of a stream; else nothing."""
        return await self._body.break_off()

    async def aclose(self) -> None:
        """The exchange is over, whichever way: free what is open. Idempotent."""
        try:
            await self._body.aclose()
        finally:
            if self._prepared is not None and self._prepared.record is not None:
                record, self._prepared.record = self._prepared.record, None
                record.seconds = time.perf_counter() - self._started
                tell(self._prepared.settings.told, record)


def _chat_body(kind: Mode, prepared: Prepared) -> Body:
    if kind == "stream":
        return ShadowStream(prepared) if prepared.settings.shadow else ChatStream(prepared)
    remade = compare_whole if prepared.settings.shadow else rewrite
    return Whole(partial(remade, prepared=prepared), prepared.settings.max_body)


def _of_completions(body: Body, limit: int) -> Body:
    """`body`, which reads chat completions, for completions."""
    return (
        body.after(completions.whole) if isinstance(body, Whole) else Piped(completions.CompletionsAsChat(limit), body)
    )


def _kind(status: int, headers: Headers) -> Mode:
    codings = b",".join(value for name, value in headers if name == b"content-encoding").lower().split(b",")
    if status != 200 or any(coding.strip() not in (b"", b"identity") for coding in codings):
        return "pass"
    match dict(headers).get(b"content-type", b"").partition(b";")[0].strip().lower():
        case b"text/event-stream":
            return "stream"
        case b"application/json":
            return "whole"
        case _:
            return "pass"
