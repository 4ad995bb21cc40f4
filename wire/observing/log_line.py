"""One log line a request, as JSON, without any text of the request or the reply."""

from __future__ import annotations

import logging
from collections import Counter

from streamsieve.wire import json_text
from streamsieve.wire.observing.record import Record

LOGGER = "streamsieve.exchanges"
"""The logger; a line is at level INFO, and its fields are the record's `exchange` too, for handlers that want them."""

_logger = logging.getLogger(LOGGER)


def log_line(record: Record) -> None:
    """Log what is known of the exchange; what is empty is left out."""
    if not _logger.isEnabledFor(logging.INFO):
        return
    calls: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for heard in record.choices.values():
        calls.update(heard.calls)
        rules.update(heard.rules)
    fields = {
        "model": record.model,
        "api": record.api,
        "format": record.format,
        "mode": record.mode,
        "outcome": record.outcome,
        "status": record.status,
        "choices": len(record.choices),
        "finish_reasons": [heard.finish_reason for heard in record.choices.values()],
        "calls": dict(calls),
        "repairs": dict(rules),
        "differs": sorted({tray for heard in record.choices.values() for tray in heard.differs or ()}),
        "seconds": round(record.seconds, 4),
        "first_seconds": None if record.first_seconds is None else round(record.first_seconds, 4),
        "parse_seconds": round(record.parse_seconds, 6),
    }
    told = {name: value for name, value in fields.items() if value not in (None, {}, [])}
    _logger.info("%s", json_text.encode(told).decode(), extra={"exchange": told})
