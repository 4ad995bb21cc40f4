"""`wrap` makes a second client on the same connections, and leaves the first one alone."""

from __future__ import annotations

import gc
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai
import pytest

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.sdk_patch import wrap
from streamsieve.wire.settings import Settings


def content(client, chat) -> str:
    return client.chat.completions.create(**chat).choices[0].message.content


def test_the_given_client_is_not_changed(upstream, client, chat, parsers):
    http_client = client._client
    before = dict(vars(client)), dict(vars(http_client))
    wrapped = wrap(client, **parsers)
    assert (dict(vars(client)), dict(vars(http_client))) == before
    assert content(wrapped, chat) == "One moment. 😀"
    assert content(client, chat) == upstream.raw


def test_both_use_the_same_connections(upstream, client, chat, parsers):
    wrapped = wrap(client, **parsers)
    for _ in range(3):
        content(client, chat)
        content(wrapped, chat)
    assert len(upstream.connections) == 1


def test_the_options_of_the_client_are_kept(upstream, parsers):
    given = openai.OpenAI(
        base_url=upstream.url,
        api_key="k",
        organization="o",
        project="p",
        timeout=11,
        max_retries=4,
        default_headers={"x-team": "t"},
        default_query={"v": "1"},
    )
    wrapped = wrap(given, **parsers)
    assert type(wrapped) is openai.OpenAI
    names = ["base_url", "api_key", "organization", "project", "timeout", "max_retries", "_custom_headers"]
    names += ["_custom_query"]
    assert [getattr(wrapped, name) for name in names] == [getattr(given, name) for name in names]
    assert isinstance(wrapped._client, type(given._client))
    wrapped.close()


@pytest.mark.parametrize("first", ["original", "wrapped"])
def test_closing_either_closes_both(first, upstream, client, chat, parsers):
    """As for two clients of which one is the other's `with_options()`."""
    wrapped = wrap(client, **parsers)
    content(wrapped, chat)
    (client if first == "original" else wrapped).close()
    assert client.is_closed()
    assert wrapped.is_closed()
    for closed in (client, wrapped):
        with pytest.raises((RuntimeError, openai.APIConnectionError)) as error:  # openai 3, openai 2
            content(closed, chat)
        assert "client has been closed" in str(error.value.__cause__ or error.value)


@pytest.mark.parametrize("first", ["original", "wrapped"])
async def test_closing_either_asynchronous_client_closes_both(first, upstream, async_client, chat, parsers):
    wrapped = wrap(async_client, **parsers)
    await wrapped.chat.completions.create(**chat)
    async with async_client if first == "original" else wrapped:
        assert not wrapped.is_closed()
    assert async_client.is_closed()
    assert wrapped.is_closed()


def test_a_wrapped_client_needs_nobody_to_keep_the_original(upstream, chat, parsers):
    """The SDK's own HTTP client closes its connections when it is collected."""
    wrapped = wrap(openai.OpenAI(base_url=upstream.url, api_key="k", max_retries=0), **parsers)
    gc.collect()
    assert content(wrapped, chat) == "One moment. 😀"
    gc.collect()
    assert content(wrapped, chat) == "One moment. 😀"
    assert len(upstream.connections) == 1
    wrapped.close()


def test_an_original_outlives_its_wrapped_client(upstream, client, chat, parsers):
    content(client, chat)
    content(wrap(client, **parsers), chat)
    gc.collect()
    assert content(client, chat) == upstream.raw
    assert not client.is_closed()
    assert len(upstream.connections) == 1


def test_what_both_leave_behind_is_collected(upstream, chat, parsers):
    wrapped = wrap(openai.OpenAI(base_url=upstream.url, api_key="k"), **parsers)
    content(wrapped, chat)
    pool = wrapped._client._original._transport._pool
    assert len(pool.connections) == 1
    del wrapped
    gc.collect()
    assert pool.connections == []


def test_a_wrapped_client_stays_wrapped_when_copied(upstream, client, chat, parsers):
    copied = wrap(client, **parsers).with_options(timeout=3).copy(max_retries=1)
    assert (copied.timeout, copied.max_retries) == (3, 1)
    assert content(copied, chat) == "One moment. 😀"


def test_wrapping_twice_parses_once(client, chat, parsers):
    message = wrap(wrap(client, **parsers), **parsers).chat.completions.create(**chat).choices[0].message
    assert message.content == "One moment. 😀"
    assert len(message.tool_calls) == 1


@pytest.fixture
def proxy():
    """An HTTP proxy that passes on what it is asked, and keeps it."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.path)
            body = self.rfile.read(int(self.headers["content-length"]))
            request = urllib.request.Request(self.path, body, {"content-type": "application/json"})
            direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with direct.open(request) as response:
                answer = response.read()
                self.send_response(200)
                self.send_header("content-type", response.headers["content-type"])
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_): ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("how", ["environment", "option", "mount"])
def test_the_proxies_of_the_client_are_used(how, proxy, http, upstream, chat, parsers, monkeypatch):
    address, asked = proxy
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    match how:
        case "environment":
            monkeypatch.setenv("HTTP_PROXY", address)
            http_client = None
        case "option":
            http_client = http.Client(proxy=address)
        case "mount":
            http_client = http.Client(mounts={"http://": http.HTTPTransport(proxy=address), "https://": None})
    with openai.OpenAI(base_url=upstream.url, api_key="k", http_client=http_client) as client:
        assert content(wrap(client, **parsers), chat) == "One moment. 😀"
    assert asked == [f"{upstream.url}/chat/completions"]


def test_a_http_client_of_ones_own_keeps_its_ways(http, upstream, chat, parsers):
    """Its class, its hooks, its cookies: everything but the transport."""
    sent, seen = [], []

    class Signing(http.Client):
        def send(self, request, **options):
            request.headers["x-signature"] = "s"
            sent.append(request)
            return super().send(request, **options)

    http_client = Signing(event_hooks={"response": [seen.append]}, cookies={"session": "1"})
    with openai.OpenAI(base_url=upstream.url, api_key="k", http_client=http_client) as client:
        assert content(wrap(client, **parsers), chat) == "One moment. 😀"
    assert (len(sent), len(seen)) == (1, 1)
    assert upstream.asked[0].headers["x-signature"] == "s"
    assert upstream.asked[0].headers["cookie"] == "session=1"


def test_an_azure_client_keeps_working(upstream, chat, parsers):
    azure = openai.AzureOpenAI(
        azure_endpoint=upstream.url.removesuffix("/v1"), api_key="k", api_version="2024-10-21", max_retries=0
    )
    with azure:
        wrapped = wrap(azure, **parsers)
        assert type(wrapped) is openai.AzureOpenAI
        assert content(wrapped, chat) == "One moment. 😀"
    assert upstream.asked[0].url.path == "/openai/deployments/m/chat/completions"
    assert upstream.asked[0].headers["api-key"] == "k"


async def test_an_asynchronous_azure_client_keeps_working(upstream, chat, parsers):
    azure = openai.AsyncAzureOpenAI(
        azure_endpoint=upstream.url.removesuffix("/v1"), api_key="k", api_version="2024-10-21", max_retries=0
    )
    async with azure:
        answer = await wrap(azure, **parsers).chat.completions.create(**chat)
    assert answer.choices[0].message.content == "One moment. 😀"


@pytest.mark.parametrize("given", [None, "client", object(), openai], ids=repr)
def test_what_is_no_client_is_refused(given):
    with pytest.raises(ConfigurationError, match="client"):
        wrap(given, tool_parser="hermes")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tool_parser": "hermse"}, "hermes"),
        ({"settings": Settings(), "tool_parser": "hermes"}, "settings"),
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused_at_once(options, named, client):
    with pytest.raises(ConfigurationError, match=named):
        wrap(client, **options)
