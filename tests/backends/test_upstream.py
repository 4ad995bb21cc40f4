"""The gateway, over real sockets: what is asked of the upstream, and what comes back from it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import product
from typing import Any

import anyio
import httpx2
import hypercorn.trio
import openai
import pytest
import trio
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamsieve.backends.loopback import loopback
from streamsieve.backends.replay import replay
from streamsieve.backends.upstream import Upstream, UpstreamBroke
from streamsieve.parsers.errors import ConfigurationError

Serve = Callable[[ASGIApp], str]


def answering(status: int, headers: list[tuple[bytes, bytes]], *bodies: bytes) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for body in bodies:
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


def exchange(url: str, request: bytes) -> bytes:
    """Bytes over a socket, to send and to see what no client library would."""
    host, port = httpx2.URL(url).host, httpx2.URL(url).port
    with socket.create_connection((host, port), timeout=5) as connection:
        connection.sendall(request)
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return answer


@pytest.mark.parametrize(
    ("base", "asked", "target"),
    [
        ("", "/v1/models", "/v1/models"),
        ("/", "/v1/models?a=1&b=%20+c", "/v1/models?a=1&b=%20+c"),
        ("", "/a%2Fb/%C3%A9/%e9/x;y=1/../z", "/a%2Fb/%C3%A9/%e9/x;y=1/../z"),
        ("", "/a[b]|c?q=[1]&q=%5b'", "/a[b]|c?q=[1]&q=%5b'"),
        ("", "//double//", "//double//"),
        ("", "/empty?", "/empty"),
        ("/api/v1", "/v1/models", "/api/v1/models"),
        ("/api/v1/", "/health", "/api/health"),
        ("/api/v1", "/v1beta/models", "/api/v1beta/models"),
        ("/openai", "/v1/models", "/openai/v1/models"),
    ],
)
def test_path_and_query_go_on_byte_for_byte(serve: Serve, witness: Any, base: str, asked: str, target: str) -> None:
    url = serve(Upstream(serve(witness) + base))
    exchange(url, f"GET {asked} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
    scope = witness.scopes[-1]
    query = scope["query_string"]
    assert scope["raw_path"] + (b"?" + query if query else b"") == target.encode()


def test_a_mounted_gateway_takes_its_prefix_off(serve: Serve, witness: Any) -> None:
    upstream = Upstream(serve(witness))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with aclosing(upstream):
            yield

    url = serve(Starlette(routes=[Mount("/é x", app=upstream)], lifespan=lifespan))
    assert httpx2.get(url + "/%C3%A9%20x/v1/mod%2Fels").status_code == 200
    assert witness.scopes[-1]["raw_path"] == b"/v1/mod%2Fels"


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW")


def test_every_method_with_and_without_a_body(serve: Serve, witness: Any) -> None:
    url = serve(Upstream(serve(witness)))
    for method, body in product(METHODS, (b"", b'{"a": 1}')):
        answer = httpx2.request(method, url + "/anything", content=body)
        assert answer.status_code == 200, method
        assert answer.content == (b"" if method == "HEAD" else b"ok"), method
        assert (witness.scopes[-1]["method"], witness.bodies[-1]) == (method, body)


def test_request_headers_go_on_but_for_the_hop(serve: Serve, witness: Any) -> None:
    backend = serve(witness)
    url = serve(Upstream(backend))
    exchange(
        url,
        b"POST /v1/x HTTP/1.1\r\nHost: mine\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nTE: trailers\r\n"
        b"Keep-Alive: 3\r\nUpgrade: h3\r\nProxy-Connection: x\r\nExpect: 100-continue\r\nAuthorization: Bearer k\r\n"
        b"Cookie: a=1\r\nX-Two: 1\r\nX-Two: \xe9\r\nAccept-Encoding: br\r\nContent-Length: 2\r\n\r\nhi",
    )
    host = backend.removeprefix("http://").encode()
    assert sorted(witness.headers) == sorted(
        [
            (b"host", host),
            (b"authorization", b"Bearer k"),
            (b"cookie", b"a=1"),
            (b"x-two", b"1"),
            (b"x-two", b"\xe9"),
            (b"accept-encoding", b"br"),
            (b"content-length", b"2"),
            (b"via", b"1.1 streamsieve"),
        ]
    )


def test_a_key_of_its_own_replaces_the_clients(serve: Serve, witness: Any) -> None:
    url = serve(Upstream(serve(witness), api_key="theirs"))
    httpx2.get(url, headers={"authorization": "Bearer ours"})
    assert [value for name, value in witness.headers if name == b"authorization"] == [b"Bearer theirs"]


def test_nothing_is_added_by_a_client_library(serve: Serve, witness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No user agent, no decoding; cookies of one answer in no other request; no proxy from the environment."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    url = serve(Upstream(serve(witness)))
    request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    assert b"200 OK" in exchange(url, request)
    assert {name for name, _ in witness.headers} == {b"host", b"via"}


def page(status: int) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
    """Headers, and the parts of the body, where the status has one."""
    headers = [
        (b"content-type", b"text/html"),
        (b"location", b"/elsewhere"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"x-note", b"\xe9"),
        (b"retry-after", b"7"),
        (b"etag", b'"x"'),
    ]
    return (headers, []) if status in (204, 304) else ([*headers, (b"content-length", b"5")], [b"<p>", b"\xff\x00"])


def test_status_headers_and_body_come_back_unchanged(serve: Serve) -> None:
    async def backend(scope: Scope, receive: Receive, send: Send) -> None:
        status = int(scope["path"].removeprefix("/"))
        headers, body = page(status)
        await answering(status, headers, *body)(scope, receive, send)

    url = serve(Upstream(serve(backend)))
    for status in (200, 201, 204, 206, 301, 302, 304, 307, 400, 404, 429, 500, 503, 599):
        headers, body = page(status)
        answer = httpx2.get(f"{url}/{status}")
        assert answer.status_code == status
        assert sorted(answer.headers.raw) == sorted(headers)
        assert answer.content == b"".join(body)


def test_coded_bodies_pass_coded(serve: Serve) -> None:
    coded = b"\x1f\x8b not really gzip"
    backend = answering(200, [(b"content-encoding", b"gzip"), (b"content-type", b"application/json")], coded)
    url = serve(Upstream(serve(backend)))
    with httpx2.stream("GET", url) as answer:
        assert b"".join(answer.iter_raw()) == coded
        assert answer.headers["content-encoding"] == "gzip"


async def test_the_request_body_streams(serve: Serve) -> None:
    """The upstream sees the first part before the client has written the second."""
    first_seen = threading.Event()
    parts: list[bytes] = []

    async def backend(scope: Scope, receive: Receive, send: Send) -> None:
        more = True
        while more:
            message = await receive()
            parts.append(message["body"])
            first_seen.set()
            more = message["more_body"]
        await answering(200, [], b"done")(scope, receive, send)

    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        assert await anyio.to_thread.run_sync(first_seen.wait, 5)
        yield b"two"

    url = serve(Upstream(serve(backend)))
    async with httpx2.AsyncClient() as client:
        answer = await client.post(url, content=body())
    assert answer.content == b"done"
    assert b"".join(parts) == b"onetwo"


async def test_the_response_streams(serve: Serve) -> None:
    """Each part is with the client before the upstream writes the next; the headers before the first."""
    go_on = threading.Semaphore(0)

    async def backend(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b"one", b"two", b"three"):
            assert await anyio.to_thread.run_sync(lambda: go_on.acquire(timeout=5))
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    url = serve(Upstream(serve(backend)))
    async with httpx2.AsyncClient() as client, client.stream("GET", url) as answer:
        parts = answer.aiter_raw()
        for part in (b"one", b"two", b"three"):
            go_on.release()
            assert await anext(parts) == part


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"data: x\n\n", "more_body": True})
        await anyio.sleep(0.01)


async def silent(scope: Scope, receive: Receive, send: Send) -> None:
    await anyio.sleep_forever()


async def reading(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


@pytest.mark.parametrize("backend", [endless, silent, reading], ids=["in the response", "before it", "in the request"])
async def test_a_client_that_leaves_ends_the_upstreams_request_within_a_second(serve: Serve, backend: ASGIApp) -> None:
    started, left = threading.Event(), threading.Event()

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(backend, scope, receive, send)
            started.set()
            if backend is not reading:
                while (await receive())["type"] != "http.disconnect":
                    continue
                tasks.cancel_scope.cancel()
        left.set()

    url = httpx2.URL(serve(Upstream(serve(watched))))
    stream = await anyio.connect_tcp(url.host, url.port or 80)
    length = b"content-length: 9\r\n" if backend is reading else b""
    await stream.send(b"POST / HTTP/1.1\r\nhost: x\r\n" + length + b"\r\nabc"[: 5 if length else 2])
    assert await anyio.to_thread.run_sync(started.wait, 5)
    await stream.aclose()
    assert await anyio.to_thread.run_sync(left.wait, 1)


def test_a_thousand_aborted_streams_leave_no_connection(serve: Serve) -> None:
    transport = httpx2.AsyncHTTPTransport()
    url = serve(Upstream(serve(replay(delay=0.05)), transport=transport))
    body = {"model": "hermes", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with httpx2.Client() as client:
        for _ in range(1000):
            with client.stream("POST", url + "/v1/chat/completions", json=body) as answer:
                next(answer.iter_bytes())
    connections = transport._pool.connections  # type: ignore[attr-defined]
    deadline = time.monotonic() + 1
    while connections and time.monotonic() < deadline:
        time.sleep(0.01)
        connections = transport._pool.connections  # type: ignore[attr-defined]
    assert connections == []


def test_connections_are_reused_and_closed_with_the_lifespan(serve: Serve, witness: Any) -> None:
    class Counting(httpx2.AsyncHTTPTransport):
        closed = False

        async def aclose(self) -> None:
            await super().aclose()
            self.closed = True

    transport = Counting()
    with loopback(Upstream(serve(witness), transport=transport)) as url:
        ports = set()
        for _ in range(5):
            httpx2.get(url)
            ports.add(witness.scopes[-1]["client"][1])
        assert len(ports) == 1
    assert transport.closed


def test_an_upstream_that_is_not_there_is_502(serve: Serve) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = serve(Upstream(f"http://127.0.0.1:{free.getsockname()[1]}"))
        answer = httpx2.get(url + "/v1/models")
        client = openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0)
        with client, pytest.raises(openai.InternalServerError) as caught:
            client.models.list()
    assert answer.status_code == 502
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert "cannot be reached" in error["message"]
    assert caught.value.code == error["code"] == "upstream_unreachable"


def test_an_upstream_that_hangs_up_is_502_and_one_that_is_slow_504(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        backend = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def hang_up() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)

        thread = threading.Thread(target=hang_up)
        thread.start()
        answer = httpx2.get(serve(Upstream(backend)))
        thread.join()
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")

        answer = httpx2.get(serve(Upstream(backend, read_timeout=0.05)))
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "upstream_timeout")


def in_two_parts() -> Iterator[bytes]:
    yield b"{"
    time.sleep(0.05)
    yield b"}"


@pytest.mark.parametrize(("body", "connections", "status"), [(b"{}", 2, 200), (in_two_parts(), 1, 502)])
def test_a_kept_connection_that_the_upstream_closes_is_no_failure(
    serve: Serve, body: Any, connections: int, status: int
) -> None:
    """Each connection answers one request and closes at the second. What was streamed cannot be sent again."""

    def run() -> None:
        for _ in range(connections):
            connection, _ = listener.accept()
            with connection:
                asked = b""
                while not asked.endswith(b"{}"):  # head and body may come one by one
                    asked += connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                connection.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        with loopback(Upstream(f"http://127.0.0.1:{listener.getsockname()[1]}")) as url:
            assert httpx2.post(url, content=b"{}").status_code == 200
            assert httpx2.post(url, content=body).status_code == status
        thread.join()


def test_a_body_that_breaks_off_does_not_read_as_complete(serve: Serve) -> None:
    url = serve(Upstream(serve(replay())))
    body = {"model": "hermes", "messages": [{"role": "user"}], "stream": True, "replay": {"error": "drop"}}
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.post(url + "/v1/chat/completions", json=body)


class Exchange:
    """One exchange at raw ASGI: what the application was sent, and what it sent."""

    def __init__(self, *requests: Message, path: str = "/") -> None:
        self.scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
        self.requests = list(requests)
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if not self.requests:
            await anyio.sleep_forever()
        return self.requests.pop(0)

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def run(self, transport: httpx2.AsyncBaseTransport) -> None:
        await Upstream("http://backend", transport=transport)(self.scope, self.receive, self.send)


WHOLE: Message = {"type": "http.request", "body": b"{}"}
PART: Message = {"type": "http.request", "body": b"{", "more_body": True}
GONE: Message = {"type": "http.disconnect"}


class Body(httpx2.AsyncByteStream):
    """Endless, or broken off after one part; closing it takes a moment."""

    closed = False

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"part"
        if self.fault:
            raise self.fault
        await anyio.sleep_forever()

    async def aclose(self) -> None:
        await anyio.sleep(0)
        self.closed = True


async def test_the_break_is_told_to_the_server_as_one_error() -> None:
    exchange, body = Exchange(WHOLE), Body(httpx2.ReadError("gone"))
    with pytest.raises(UpstreamBroke):
        await exchange.run(httpx2.MockTransport(lambda request: httpx2.Response(200, stream=body)))
    assert [message.get("body") for message in exchange.sent] == [None, b"part"]
    assert body.closed


async def test_what_the_servers_send_raises_leaves_as_itself() -> None:
    """Servers of ASGI 2.4 tell with an OSError that the client has gone."""

    class Deaf(Exchange):
        async def send(self, message: Message) -> None:
            raise OSError("the client has gone")

    body = Body()
    with pytest.raises(OSError, match="the client has gone"):
        await Deaf(WHOLE).run(httpx2.MockTransport(lambda request: httpx2.Response(200, stream=body)))
    assert body.closed


class Answering(httpx2.AsyncBaseTransport):
    """Answers without reading the request's body."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(200, stream=self.body)


@pytest.mark.parametrize("requests", [(WHOLE, GONE), (PART, GONE), (PART, PART, WHOLE, GONE)])
async def test_the_response_is_closed_when_the_client_leaves_also_where_the_request_was_not_read(
    requests: tuple[Message, ...],
) -> None:
    body = Body()
    with anyio.fail_after(5):
        await Exchange(*requests).run(Answering(body))
    assert body.closed


async def test_nothing_is_asked_for_a_client_that_has_left() -> None:
    transport = Answering(Body())
    exchange = Exchange(GONE)
    await exchange.run(transport)
    assert (transport.requests, exchange.sent) == ([], [])


async def test_the_root_of_a_mount_is_the_root_of_the_upstream() -> None:
    transport = Answering(Body())
    exchange = Exchange(WHOLE, GONE, path="/mount")
    exchange.scope["root_path"] = "/mount"
    await exchange.run(transport)
    assert transport.requests[0].extensions["target"] == b"/"


def test_a_request_that_breaks_off_is_not_completed(serve: Serve) -> None:
    """In chunks, whose end only the last one tells."""
    seen: list[Message] = []
    started, left = threading.Event(), threading.Event()

    async def backend(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        while not seen or seen[-1]["type"] != "http.disconnect":
            seen.append(await receive())
            started.set()
        left.set()

    url = httpx2.URL(serve(Upstream(serve(backend))))
    with socket.create_connection((url.host, url.port or 80)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        assert started.wait(5)
    assert left.wait(1)
    assert all(message["more_body"] for message in seen[:-1])


def test_a_websocket_is_refused(serve: Serve, witness: Any) -> None:
    url = serve(Upstream(serve(witness)))
    answer = exchange(
        url,
        b"GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 403")
    assert witness.scopes == []


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("127.0.0.1:8000", "http://"),
        ("ftp://host", "http://"),
        ("http://", "host"),
        ("http://user:pass@host", "API key"),
        ("http://host:99999", "port"),
        ("https://host/v1?api-version=1", "query"),
        ("http://host#x", "fragment"),
        ("http://host:port", "no URL"),
    ],
)
def test_a_wrong_url_is_refused_at_construction(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        Upstream(url)
    assert "upstream" in str(caught.value)


def test_under_trio(serve: Serve) -> None:
    async def main() -> bytes:
        config = Config()
        config.bind = ["127.0.0.1:0"]
        async with trio.open_nursery() as nursery:
            stop = trio.Event()
            run = partial(hypercorn.trio.serve, shutdown_trigger=stop.wait)
            binds = await nursery.start(run, Upstream(backend), config)
            async with httpx2.AsyncClient() as client:
                answer = await client.get(binds[0] + "/v1/models")
            stop.set()
        return answer.content

    backend = serve(answering(200, [], b"one ", b"two"))
    assert trio.run(main) == b"one two"
