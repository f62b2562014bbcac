//! Spans of applied events, each in the trace of the submission it came from.

use emend_base::{span, traceparent::Traceparent};
use emend_proto::common::v1::OutcomeState;
use tracing::{Span, field::Empty, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::ingest::event::{EventResult, IngestEvent};

/// Begins a span for each event whose submission is traced. Its changes carry that span's context.
pub(super) fn begin(events: &mut [IngestEvent]) -> Vec<Span> {
    if !span::is_recorded() {
        return Vec::new();
    }
    let together = i64::try_from(events.len()).unwrap_or(i64::MAX);
    let spans: Vec<_> = events.iter().map(|event| begin_one(event, together)).collect();
    span::link_batch(&spans);
    for (event, span) in events.iter_mut().zip(&spans) {
        event.applied_under = span::traceparent_of(span).map(|traceparent| traceparent.to_string());
    }
    spans
}

fn begin_one(event: &IngestEvent, together: i64) -> Span {
    let Some(traceparent) = Traceparent::parse_sampled(&event.traceparent) else {
        return Span::none();
    };
    let span = info_span!(
        target: span::TARGET,
        parent: None,
        "apply feedback",
        otel.kind = "consumer",
        messaging.system = "emend",
        messaging.message.id = %event.id,
        messaging.batch.message_count = together,
        emend.outcome = Empty,
        emend.kind = Empty,
        emend.revision = Empty,
        otel.status_description = Empty,
    );
    span::set_parent(&span, &traceparent);
    span
}

/// Ends the spans with the outcomes of their events.
pub(super) fn end(spans: Vec<Span>, results: &[EventResult]) {
    for (span, result) in spans.into_iter().zip(results) {
        match result {
            Ok(outcome) => {
                let state = outcome.state();
                span.record("emend.outcome", state.as_str_name());
                span.record("emend.kind", outcome.kind().as_str_name());
                if outcome.revision > 0 {
                    span.record("emend.revision", outcome.revision);
                }
                if state == OutcomeState::Applied && outcome.auto_applied {
                    span.add_event("promoted", Vec::new());
                }
            }
            Err(error) => {
                span.record("otel.status_description", error.reason());
            }
        }
    }
}
