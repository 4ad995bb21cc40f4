"""The middleware owns the completion routes and nothing else."""

from __future__ import annotations

import pytest

from streamsieve.middleware import SieveMiddleware
from streamsieve.middleware.asgi import route_path
from streamsieve.wire.settings import Settings

HTTP = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}


@pytest.mark.parametrize(
    "scope",
    [
        {"type": "lifespan"},
        {"type": "websocket", "path": "/v1/chat/completions", "headers": []},
        {**HTTP, "path": "/health"},
        {**HTTP, "path": "/v1/embeddings"},
        {**HTTP, "path": "/v1/chat/completions/"},
        {**HTTP, "method": "GET"},
        {**HTTP, "method": "HEAD"},
        {**HTTP, "method": "OPTIONS"},
        {**HTTP, "path": "/chat/completions", "root_path": "/chat"},
        {**HTTP, "headers": [(b"content-length", b"999999999")]},
    ],
    ids=str,
)
async def test_other_calls_go_through_as_the_very_objects(scope, parsers):
    seen = []

    async def app(*call):
        seen.append(call)

    async def receive(): ...

    async def send(message): ...

    given = dict(scope)
    await SieveMiddleware(app, **parsers)(scope, receive, send)
    assert [tuple(map(id, call)) for call in seen] == [(id(scope), id(receive), id(send))]
    assert scope == given


@pytest.mark.parametrize(
    ("path", "root_path", "below"),
    [
        ("/v1/chat/completions", "", "/v1/chat/completions"),
        ("/api/v1/chat/completions", "/api", "/v1/chat/completions"),
        ("/api/v1/chat/completions", "/api/", "/v1/chat/completions"),
        ("/apis/chat/completions", "/api", "/apis/chat/completions"),  # not below it
        ("/chat/completions", "/proxy", "/chat/completions"),  # a server that has stripped the prefix
    ],
)
def test_the_path_is_the_one_below_the_mount(path, root_path, below):
    assert route_path({"path": path, "root_path": root_path}) == below


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (400, [(b"content-type", b"application/json")], b'{"error": {"message": "<tool_call>"}}'),
        (500, [(b"content-type", b"text/html")], b"<h1>broken</h1>"),
        (429, [(b"content-type", b"application/json"), (b"retry-after", b"1")], b'{"error": {}}'),
        (404, [(b"content-type", b"text/event-stream")], b"data: {}\n\n"),
        (200, [(b"content-type", b"text/plain")], b"<think>"),
        (200, [], b"<think>"),
        (200, [(b"content-type", b"application/json"), (b"content-encoding", b"br")], b"\x1b\x03\x00"),
        (200, [(b"content-type", b"text/event-stream"), (b"content-encoding", b"gzip")], b"\x1f\x8b"),
        (204, [(b"etag", b'"1"'), (b"content-length", b"0")], b""),
        (304, [(b"etag", b'"1"'), (b"content-length", b"40"), (b"content-type", b"application/json")], b""),
    ],
    ids=str,
)
async def test_other_answers_keep_every_byte(status, headers, body, call, engine, chat, parsers):
    headers = [*headers, (b"X-Engine", b"1"), (b"digest", b"d"), (b"content-md5", b"m")]
    app = engine(status, headers, [body[:3], body[3:]], start={"trailers": False})
    client = await call(SieveMiddleware(app, **parsers), chat())
    assert client.sent == [
        {"type": "http.response.start", "status": status, "headers": headers, "trailers": False},
        {"type": "http.response.body", "body": body[:3], "more_body": True},
        {"type": "http.response.body", "body": body[3:], "more_body": False},
    ]


async def test_headers_that_can_be_read_only_once_reach_the_server(call, engine, chat, parsers):
    app = engine(401, bodies=[b""], start={"headers": iter([(b"www-authenticate", b"Bearer")])})
    client = await call(SieveMiddleware(app, **parsers), chat())
    assert client.headers == {b"www-authenticate": b"Bearer"}


@pytest.mark.parametrize("streamed", [True, False])
async def test_other_kinds_of_message_are_forwarded(streamed, call, engine, chat, chunk, completion, raw, parsers):
    hint = {"type": "http.response.early_hint", "links": [b"</style.css>; rel=preload"]}
    debug = {"type": "http.response.debug", "info": {"template": "t"}}
    trailers = {"type": "http.response.trailers", "headers": [(b"x-cost", b"1")], "more_trailers": False}
    body = [chunk(raw), chunk(finish="stop"), b"data: [DONE]\n\n"] if streamed else [completion(raw)]
    kind = b"text/event-stream" if streamed else b"application/json"
    app = engine(
        headers=[(b"content-type", kind)], bodies=body, before=[hint, debug], after=[trailers], start={"trailers": True}
    )
    client = await call(SieveMiddleware(app, **parsers), chat())
    assert client.sent[:2] == [hint, debug]
    assert client.sent[-1] == trailers
    assert client.start["trailers"] is True
    assert b"get_tide" in client.body
    assert b"<tool_call>" not in client.body


async def test_the_app_sees_a_copy_without_what_could_not_be_rewritten(call, engine, chat, parsers):
    app = engine(bodies=[b"data: [DONE]\n\n"])
    extensions = {"http.response.pathsend": {}, "http.response.zerocopysend": {}, "http.response.trailers": {}}
    client = await call(
        SieveMiddleware(app, **parsers),
        chat(),
        headers=[(b"Accept-Encoding", b"gzip"), (b"authorization", b"Bearer k")],
        extensions=extensions,
    )
    (inner,) = app.scopes
    assert inner is not client.scope
    assert inner["extensions"] == {"http.response.trailers": {}, "streamsieve.prompt": {}}
    assert [name for name, _ in inner["headers"]] == [b"host", b"content-type", b"authorization"]
    assert client.scope["extensions"] == extensions
    assert (b"Accept-Encoding", b"gzip") in client.scope["headers"]


async def test_what_the_app_leaves_in_its_scope_is_there_for_the_middleware_outside(call, chat, parsers):
    async def app(scope, receive, send):
        scope["route"] = "/v1/chat/completions"

    client = await call(SieveMiddleware(app, **parsers), chat(), headers=[(b"accept-encoding", b"gzip")])
    assert client.scope["route"] == "/v1/chat/completions"
    assert (b"accept-encoding", b"gzip") in client.scope["headers"]


async def test_a_file_sent_past_the_extensions_still_has_its_start(call, engine, chat, parsers):
    """`pathsend` was not announced; an app that sends one all the same gets its own answer through."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.pathsend", "path": "/answer.json"})

    client = await call(SieveMiddleware(app, **parsers), chat())
    assert [message["type"] for message in client.sent] == ["http.response.start", "http.response.pathsend"]
    assert client.headers == {b"content-type": b"application/json"}


async def test_paths_are_an_option(call, engine, chat, chunk, raw, parsers):
    app = engine(bodies=[chunk(raw), b"data: [DONE]\n\n"])
    sieve = SieveMiddleware(app, settings=Settings(paths=["/generate"], **parsers))
    assert b"<think>" in (await call(sieve, chat())).body
    assert b"<think>" not in (await call(sieve, chat(), path="/v1/generate")).body


async def test_mounted_apps_match_below_their_mount(call, engine, chat, chunk, raw, parsers):
    sieve = SieveMiddleware(engine(bodies=[chunk(raw), b"data: [DONE]\n\n"]), **parsers)
    client = await call(sieve, chat(), path="/llm/chat/completions", root_path="/llm")
    assert client.events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert b"<think>" not in client.body
