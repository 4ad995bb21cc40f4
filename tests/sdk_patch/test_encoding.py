"""Coded bodies: not asked for on our requests, undone piece by piece where they come all the same."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import openai
import pytest
from starlette.responses import Response

from streamsieve.sdk_patch import SieveTransport, reasoning, wrap


def test_identity_is_asked_for_on_completions_and_only_there(upstream, client, chat, parsers):
    wrapped = wrap(client, **parsers)
    wrapped.chat.completions.create(**chat)
    upstream.script = [lambda _: Response(b"{}", media_type="application/json")]
    wrapped.models.with_raw_response.list()
    completion, models = (request.headers["accept-encoding"] for request in upstream.asked)
    assert completion == "identity"
    assert "gzip" in models


def test_the_callers_request_is_not_changed(upstream, client, chat, parsers):
    response = wrap(client, **parsers).chat.completions.with_raw_response.create(**chat)
    assert "gzip" in response.http_request.headers["accept-encoding"]


def test_the_body_arrives_as_the_sdk_wrote_it(upstream, client, chat, parsers):
    for asking in (client, wrap(client, **parsers)):
        asking.chat.completions.create(**chat)
    plain, wrapped = upstream.asked
    assert plain._body == wrapped._body
    expected = {**dict(plain.headers), "accept-encoding": "identity"}
    assert dict(wrapped.headers.items()) == expected


@pytest.mark.parametrize(
    ("coding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes), ("GZIP", gzip.compress)],
)
def test_a_coded_json_answer_is_decoded_once(coding, encode, upstream, client, chat, body, parsers):
    coded = encode(json.dumps(body(upstream.raw)).encode())
    upstream.script = [lambda _: Response(coded, media_type="application/json", headers={"content-encoding": coding})]
    response = wrap(client, **parsers).chat.completions.with_raw_response.create(**chat)
    assert response.parse().choices[0].message.content == "One moment. 😀"
    assert "content-encoding" not in response.headers
    assert int(response.headers["content-length"]) == len(response.content)


def test_a_coded_stream_is_decoded_event_by_event(upstream, client, chat, events, done, parsers):
    """The second event is made only once the first one has arrived."""
    arrived = asyncio.Event()
    loop = None

    async def coded():
        nonlocal loop
        loop = asyncio.get_running_loop()
        press = zlib.compressobj(wbits=31)
        yield press.compress(events("<think>One")) + press.flush(zlib.Z_SYNC_FLUSH)
        await asyncio.wait_for(arrived.wait(), 10)
        yield press.compress(events(" two") + done) + press.flush()

    upstream.script = [lambda _: upstream.streamed(coded(), **{"content-encoding": "gzip"})]
    thoughts = []
    for chunk in wrap(client, **parsers).chat.completions.create(**chat, stream=True):
        thoughts.append(reasoning(chunk.choices[0].delta))
        loop.call_soon_threadsafe(arrived.set)
    assert thoughts == ["One", " two"]


@pytest.mark.parametrize("streamed", [True, False])
def test_what_the_connection_says_of_itself_is_kept(streamed, client, chat, parsers):
    wrapped = wrap(client, **parsers)
    with wrapped.chat.completions.with_streaming_response.create(**chat, stream=streamed) as response:
        assert {"http_version", "reason_phrase", "network_stream"} <= response.http_response.extensions.keys()


@pytest.mark.parametrize("coding", ["x-unknown", "gzip, x-unknown"])
def test_a_coding_that_cannot_be_undone_passes_untouched(coding, http, chat, parsers):
    headers = {"content-type": "application/json", "content-encoding": coding, "etag": "e"}

    class Body(http.SyncByteStream):
        def __iter__(self):
            yield b"\x00<think>"

    inner = http.MockTransport(lambda request: http.Response(200, headers=headers, stream=Body()))
    with (
        http.Client(transport=SieveTransport(inner, **parsers)) as client,
        client.stream("POST", "http://test/v1/chat/completions", json=chat) as response,
    ):
        assert b"".join(response.iter_raw()) == b"\x00<think>"
    assert dict(response.headers) == headers


def test_a_refusal_that_is_coded_is_decoded_by_the_sdk(upstream, client, chat, parsers):
    coded = gzip.compress(b'{"error": {"message": "no"}}')
    headers = {"content-encoding": "gzip"}
    upstream.script = [lambda _: Response(coded, 400, media_type="application/json", headers=headers)]
    with pytest.raises(openai.BadRequestError, match="no"):
        wrap(client, **parsers).chat.completions.create(**chat)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_json_answer_over_the_limit_comes_as_it_is(coding, upstream, client, chat, body, parsers):
    upstream.raw += " " * 5000
    text = json.dumps(body(upstream.raw)).encode()
    coded = gzip.compress(text) if coding == "gzip" else text
    headers = {"content-encoding": coding, "etag": "e"}
    upstream.script = [lambda _: Response(coded, media_type="application/json", headers=headers)]
    response = wrap(client, max_body=2000, **parsers).chat.completions.with_raw_response.create(**chat)
    assert response.content == text
    assert response.headers["etag"] == "e"
    assert response.headers.get("content-length", str(len(text))) == str(len(text))
    assert len(upstream.connections) == 1
