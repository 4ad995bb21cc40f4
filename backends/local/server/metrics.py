"""The numbers of `/metrics`, in Prometheus' text format."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streamsieve.backends.local.engine.stats import Stats
from streamsieve.backends.reply import Piece

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Those of one application: what its replies tell, and what the engine counts."""

    def __init__(self, stats: Callable[[], Stats | None]) -> None:
        """`stats`: the engine's, None while there is no engine."""
        self._registry = CollectorRegistry()
        self.replies = Counter(
            "streamsieve_replies", "Replies that have ended", ["route", "outcome"], registry=self._registry
        )
        self.first_text = Histogram(
            "streamsieve_time_to_first_text_seconds",
            "From the request to the first text of its reply",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.duration = Histogram(
            "streamsieve_reply_duration_seconds",
            "From the request to the end of its reply",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_EngineCollector(stats))

    def text(self) -> bytes:
        """All of them, as they are now."""
        return generate_latest(self._registry)

    def observer(self, route: str) -> ReplyObserver:
        """Who counts one reply of `route`, from now on."""
        return ReplyObserver(self, route)


class ReplyObserver:
    """Measures one reply."""

    def __init__(self, metrics: Metrics, route: str) -> None:
        self._metrics = metrics
        self._route = route
        self._began = time.perf_counter()
        self._has_text = False

    def piece(self, piece: Piece) -> None:
        """One piece is on its way to the client."""
        if piece.text and not self._has_text:
            self._has_text = True
            self._metrics.first_text.observe(time.perf_counter() - self._began)

    def ended(self, outcome: str) -> None:
        """The reply is over, with this HTTP status, or `cancelled`."""
        self._metrics.replies.labels(self._route, outcome).inc()
        self._metrics.duration.observe(time.perf_counter() - self._began)


class _EngineCollector(Collector):
    """The engine's own numbers, read when they are asked for."""

    def __init__(self, stats: Callable[[], Stats | None]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        if stats is None:
            return
        for name, said, gauge in (
            ("queued_replies", "Replies that wait for a slot", stats.queued),
            ("running_replies", "Replies that are being written", stats.running),
            ("tokens_per_second", "Tokens generated in a second, of the last ten", stats.tokens_per_second),
            ("cache_filled_tokens", "Tokens whose keys and values are kept", stats.cache_filled),
            ("cache_capacity_tokens", "Tokens whose keys and values can be kept", stats.cache_capacity),
        ):
            yield GaugeMetricFamily(f"streamsieve_{name}", said, value=gauge)
        for name, said, counter in (
            ("generated_tokens", "Tokens generated", stats.generated_tokens),
            ("prompt_tokens", "Tokens of prompts that were read", stats.prompt_tokens),
            ("cached_prompt_tokens", "Tokens of prompts that were in the cache", stats.cached_tokens),
            ("engine_failures", "Steps of the model that failed", stats.failures),
        ):
            yield CounterMetricFamily(f"streamsieve_{name}", said, value=counter)
