"""Replies recorded as they came, in a file of cases, for `streamsieve parse --jsonl`, `check` and `serve --replay`."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire import json_text
from streamsieve.wire.json_text import JsonObject
from streamsieve.wire.observing.record import Heard, Record

_OF_THE_REQUEST = ("tool_choice", "parallel_tool_calls", "chat_template_kwargs", "include_reasoning")


class Capture:
    """Appends one case for each choice that was read: its raw text in the chunks it came in, and what came of it.

    The messages of the request are left out but for their roles and how long they are, unless
    `keep_messages`. The raw text of the reply is what is recorded, so the file is for its owner alone
    (mode 0600 where it is made here).
    """

    def __init__(self, path: str | Path, *, keep_messages: bool = False) -> None:
        """Raises ConfigurationError where the file cannot be written."""
        self._path = Path(path)
        self._keep_messages = keep_messages
        self._lock = threading.Lock()
        self._append(b"")

    def __call__(self, record: Record) -> None:
        """Record an exchange."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        cases = [self._case(record, heard, now) for heard in record.choices.values() if heard.texts]
        self._append(b"".join(json_text.encode(case) + b"\n" for case in cases))

    def _case(self, record: Record, heard: Heard, now: str) -> JsonObject:
        asked = record.asked
        reply = heard.reply(record.request)
        expect: JsonObject = {
            "reasoning": reply.reasoning,
            "content": reply.content,
            "tool_calls": [{"name": call.name, "arguments_text": call.arguments} for call in reply.tool_calls],
            "finish_reason": reply.finish_reason,
        }
        messages = asked.get("messages")
        return {
            "id": f"captured-{uuid4().hex[:12]}",
            "tool_parser": record.tool_parser,
            "reasoning_parser": record.reasoning_parser,
            "tools": asked.get("tools") or [],
            "request": {name: asked[name] for name in _OF_THE_REQUEST if name in asked},
            "prompt_tail": record.request.prompt_tail,
            "raw": "".join(heard.texts),
            "chunks": heard.texts,
            "engine_finish": heard.finish_reason,
            # A stream keeps a call that broke after it began, a whole reply gives it back (contract, rule 7).
            **({"expect": expect} if not heard.rules["broken_call"] else {}),
            "source": {"captured": now, "model": record.model, "mode": record.mode},
            "messages": messages if self._keep_messages else _redacted(messages),
        }

    def _append(self, lines: bytes) -> None:
        try:
            with self._lock:
                file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                with open(file, "wb") as out:
                    out.write(lines)
        except OSError as error:
            raise ConfigurationError(f"capture: {self._path}: {error.strerror}") from error


def _redacted(messages: object) -> list[JsonObject]:
    """Who said how many characters."""
    found = messages if isinstance(messages, list) else []
    return [
        {"role": message.get("role"), "characters": _length(message.get("content"))}
        for message in found
        if isinstance(message, Mapping)
    ]


def _length(content: object) -> int:
    if isinstance(content, list):
        return sum(_length(part.get("text")) for part in content if isinstance(part, Mapping))
    return len(content) if isinstance(content, str) else 0
