"""Who is told of each exchange, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from streamsieve.parsers.errors import ConfigurationError, unknown_choice
from streamsieve.wire.observing.record import Record

Observer = Callable[[Record], None]
"""Is told of an exchange when it is over. Called where the exchange runs, so it must be quick."""

_logger = logging.getLogger(__name__)


def observers(chosen: Sequence[str | Observer]) -> tuple[Observer, ...]:
    """Those that are chosen, each looked up; raises ConfigurationError for an unknown name or a missing package."""
    return tuple(map(_observer, chosen))


def tell(chosen: Sequence[Observer], record: Record) -> None:
    """Tell all of them; one that fails is logged, and fails nobody's reply."""
    for observer in chosen:
        try:
            observer(record)
        except Exception:
            _logger.exception("an observer failed: %r", observer)


def _observer(chosen: str | Observer) -> Observer:
    if callable(chosen):
        return chosen
    if chosen not in _MAKERS:
        raise unknown_choice("observers", chosen, list(_MAKERS))
    try:
        return _MAKERS[chosen]()
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"observers: {chosen!r} needs {error.name}: pip install 'streamsieve[observe]'"
        ) from error


def _log() -> Observer:
    from streamsieve.wire.observing.log_line import log_line

    return log_line


def _metrics() -> Observer:
    from streamsieve.wire.observing.metrics import count

    return count


def _telemetry() -> Observer:
    from streamsieve.wire.observing.telemetry import set_attributes

    return set_attributes


_MAKERS: Mapping[str, Callable[[], Observer]] = {"log": _log, "metrics": _metrics, "telemetry": _telemetry}
