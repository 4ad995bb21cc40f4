"""`/metrics` of a served application."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import pytest
from prometheus_client import REGISTRY, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from streamsieve.backends import metrics_route
from streamsieve.backends.application import application
from streamsieve.backends.metrics_route import MetricsMiddleware
from streamsieve.backends.replay import replay
from streamsieve.wire.settings import Settings

OBSERVED = Settings(tool_parser="hermes", observers=["metrics"])


def server(answer: Response) -> Starlette:
    async def metrics(request: Request) -> Response:
        assert "application/openmetrics-text" not in request.headers.get("accept", "")
        return answer

    return Starlette(routes=[Route("/metrics", metrics)])


async def asked(app: Any, path: str = "/metrics", **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://x") as client:
        return await client.get(path, headers={"accept": "application/openmetrics-text", **headers})


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (PlainTextResponse("theirs 1"), True),
        (PlainTextResponse("theirs 1", 500), False),
        (Response("theirs 1", media_type="application/json"), False),
    ],
)
async def test_ours_come_behind_those_of_the_backend(answer: Response, kept: bool) -> None:
    found = await asked(application(server(answer), OBSERVED))
    assert found.status_code == 200
    assert found.text.startswith("theirs 1\n#") is kept
    assert "streamsieve_exchanges_total" in found.text


async def test_a_backend_without_metrics_has_ours() -> None:
    assert "streamsieve_exchanges_total" in (await asked(application(replay(), OBSERVED))).text


async def test_there_are_none_unless_they_are_wanted() -> None:
    assert (await asked(application(replay(), Settings(tool_parser="hermes")))).status_code == 404


async def test_they_want_the_key() -> None:
    app = application(replay(), OBSERVED, api_key="secret")
    assert (await asked(app)).status_code == 401
    assert (await asked(app, authorization="Bearer secret")).status_code == 200


async def test_no_metric_is_there_twice() -> None:
    theirs = generate_latest(REGISTRY).decode()
    assert "python_info" in theirs
    kept = "".join(line + "\n" for line in theirs.splitlines() if "streamsieve_" not in line)
    text = (await asked(application(server(PlainTextResponse(kept)), OBSERVED))).text
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("fault", ["breaks off", "never answers"])
async def test_a_backend_that_fails_keeps_nobody_from_ours(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_route, "PATIENCE", 0.05)

    async def backend(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"theirs 1\nth", "more_body": True})
        if fault == "breaks off":
            raise ConnectionError("gone")
        await anyio.sleep_forever()

    found = await asked(MetricsMiddleware(backend))
    assert found.status_code == 200
    assert "theirs" not in found.text
    assert "streamsieve_exchanges_total" in found.text
