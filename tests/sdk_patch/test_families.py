"""httpx2 or httpx: the family of what is handed in, whatever else is installed."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys

import openai
import pytest

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.sdk_patch import AsyncSieveTransport, SieveTransport, wrap

INSTALLED = [name for name in ("httpx2", "httpx") if importlib.util.find_spec(name)]


@pytest.fixture(params=INSTALLED)
def family(request):
    return importlib.import_module(request.param)


@pytest.fixture
def answered(family, body):
    """A transport of the family that answers with a raw completion."""
    return family.MockTransport(lambda request: family.Response(200, json=body("<think>Hm.</think>Yes.")))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_transport_is_of_the_family_of_the_one_inside(streamed, family, answered, events, done, chat, parsers):
    if streamed:
        stream = events("<think>Hm.</think>Yes.") + events(finish="stop") + done
        kind = {"content-type": "text/event-stream"}
        answered = family.MockTransport(lambda request: family.Response(200, headers=kind, content=stream))
    transport = SieveTransport(answered, **parsers)
    assert isinstance(transport, family.BaseTransport)
    with family.Client(transport=transport) as client:
        response = client.post("http://test/v1/chat/completions", json=chat)
        assert type(response) is family.Response
    assert '"reasoning":"Hm."' in response.text
    assert "<think>" not in response.text


async def test_an_asynchronous_one_too(family, answered, chat, parsers):
    transport = AsyncSieveTransport(answered, **parsers)
    assert isinstance(transport, family.AsyncBaseTransport)
    async with family.AsyncClient(transport=transport) as client:
        response = await client.post("http://test/v1/chat/completions", json=chat)
        assert type(response) is family.Response
    assert '"reasoning":"Hm."' in response.text


def test_the_sdk_takes_either_family(family, upstream, chat, parsers):
    """openai 3 takes a client of httpx as well, openai 2 takes no other."""
    if family.__name__ == "httpx2" and openai.__version__ < "3":
        pytest.skip("openai 2 takes no client of httpx2")
    with openai.OpenAI(base_url=upstream.url, api_key="k", http_client=family.Client()) as client:
        wrapped = wrap(client, **parsers)
        assert wrapped.chat.completions.create(**chat).choices[0].message.content == "One moment. 😀"
        thought = "".join(
            getattr(chunk.choices[0].delta, "reasoning", "")
            for chunk in wrapped.chat.completions.create(**chat, stream=True)
            if chunk.choices
        )
    assert thought == "The tide — I look."


def test_entering_and_closing_reach_the_transport_inside(family, parsers):
    heard = []

    class Inner(family.BaseTransport):
        def __enter__(self):
            heard.append("enter")
            return self

        def __exit__(self, *_):
            heard.append("exit")

        def close(self):
            heard.append("close")

    with family.Client(transport=SieveTransport(Inner(), **parsers)):
        heard.append("open")
    SieveTransport(Inner(), **parsers).close()
    assert heard == ["enter", "open", "exit", "close"]


async def test_entering_and_closing_reach_the_asynchronous_transport_inside(family, parsers):
    heard = []

    class Inner(family.AsyncBaseTransport):
        async def __aenter__(self):
            heard.append("enter")
            return self

        async def __aexit__(self, *_):
            heard.append("exit")

        async def aclose(self):
            heard.append("close")

    async with family.AsyncClient(transport=AsyncSieveTransport(Inner(), **parsers)):
        heard.append("open")
    await AsyncSieveTransport(Inner(), **parsers).aclose()
    assert heard == ["enter", "open", "exit", "close"]


@pytest.mark.parametrize("factory", [SieveTransport, AsyncSieveTransport])
def test_what_is_of_no_family_is_refused(factory):
    with pytest.raises(ConfigurationError, match="httpx2, httpx"):
        factory(object(), tool_parser="hermes")


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("streamsieve.sdk_patch", ["openai", "httpx", "httpx2", "starlette", "streamsieve.middleware", "torch"]),
        ("streamsieve.sdk_patch, openai", ["httpx2" if openai.__version__ < "3" else "httpx", "starlette"]),
    ],
)
def test_a_fresh_interpreter_imports_no_http_library_for_us(imported, absent):
    code = f"import sys, {imported}; print([name for name in {absent!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
