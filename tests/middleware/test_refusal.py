"""A request that asks for what the format does not have is answered 400, and the app is not asked."""

from __future__ import annotations

import json

import pytest

from streamsieve.middleware import SieveMiddleware


@pytest.mark.parametrize(
    ("kwargs", "refused"),
    [({"reasoning_effort": "low"}, False), ({}, False), ({"reasoning_effort": "endless"}, True)],
)
async def test_unknown_level_of_thinking(kwargs, refused, call, engine, chat, chunk):
    app = engine(bodies=[chunk("Hi"), b"data: [DONE]\n\n"])
    client = await call(SieveMiddleware(app, reasoning_parser="k2_horizon"), chat(chat_template_kwargs=kwargs))
    assert client.start["status"] == (400 if refused else 200)
    assert bool(app.scopes) is not refused
    if refused:
        error = json.loads(client.body)["error"]
        assert error["type"] == "invalid_request_error"
        assert error["param"] == "chat_template_kwargs"
        assert "'endless'" in error["message"]
        assert "high" in error["message"]
