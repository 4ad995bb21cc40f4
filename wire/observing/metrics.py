"""Prometheus metrics of the exchanges. Their labels come from closed sets: never a model, a tool or any text."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

from streamsieve.wire.observing.record import Record

_EXCHANGES = Counter("streamsieve_exchanges", "Exchanges that are over.", ["format", "api", "mode", "outcome"])
_CALLS = Counter("streamsieve_tool_calls", "Tool calls in replies, by what became of them.", ["format", "outcome"])
_REPAIRS = Counter("streamsieve_repairs", "Where replies broke their own format.", ["format", "rule"])
_DIFFERENCES = Counter(
    "streamsieve_shadow_choices", "Choices read in shadow mode: `same`, or a tray that differs.", ["format", "tray"]
)
_HELD = Histogram(
    "streamsieve_held_characters",
    "The most characters of a choice that waited at once.",
    ["format"],
    buckets=(0, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576),
)
_PARSING = Histogram(
    "streamsieve_parse_seconds",
    "Time in the parser and round it, an exchange.",
    ["format", "mode"],
    buckets=(0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5),
)
_FIRST = Histogram(
    "streamsieve_first_byte_seconds",
    "Time to the first bytes of the reply's body.",
    ["format", "mode"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)


def count(record: Record) -> None:
    """Count one exchange, in `prometheus_client`'s own registry."""
    format, mode = record.format, record.mode
    _EXCHANGES.labels(format, record.api, mode, record.outcome).inc()
    if mode == "pass":
        return
    _PARSING.labels(format, mode).observe(record.parse_seconds)
    if record.first_seconds is not None:
        _FIRST.labels(format, mode).observe(record.first_seconds)
    for heard in record.choices.values():
        _HELD.labels(format).observe(heard.most_held)
        for outcome, number in heard.calls.items():
            _CALLS.labels(format, outcome).inc(number)
        for rule, number in heard.rules.items():
            _REPAIRS.labels(format, rule).inc(number)
        if heard.differs is not None:
            for tray in heard.differs or ("same",):
                _DIFFERENCES.labels(format, tray).inc()
