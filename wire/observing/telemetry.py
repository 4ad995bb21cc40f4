"""What is known of an exchange as attributes of the current span, by OpenTelemetry's GenAI conventions."""

from __future__ import annotations

from opentelemetry import trace

from streamsieve.wire.observing.record import Record


def set_attributes(record: Record) -> None:
    """Add to the span that is current where the exchange ends: the server's, or the caller's own.

    https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/; the names are spelled out, since the
    conventions' package has moved them. Without a span that records, nothing happens.
    """
    span = trace.get_current_span()
    if not span.is_recording():
        return
    span.set_attribute("gen_ai.operation.name", "chat")
    if record.model:
        span.set_attribute("gen_ai.request.model", record.model)
    span.set_attribute("gen_ai.request.stream", record.mode == "stream")
    reasons = [heard.finish_reason or "" for heard in record.choices.values()]
    if reasons:
        span.set_attribute("gen_ai.response.finish_reasons", reasons)
    if record.first_seconds is not None:
        span.set_attribute("gen_ai.response.time_to_first_chunk", record.first_seconds)
    span.set_attribute("streamsieve.format", record.format)
    span.set_attribute("streamsieve.outcome", record.outcome)
    for heard in record.choices.values():
        for rule, count in heard.rules.items():
            span.add_event("streamsieve.repair", {"rule": rule, "count": count})
