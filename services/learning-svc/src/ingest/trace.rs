//! Spans of applied events, each in the trace of the submission it came from.

use emend_base::{
    span::{Item, Kind, Span},
    traceparent::Traceparent,
};
use emend_proto::common::v1::OutcomeState;

use crate::ingest::event::{EventResult, IngestEvent};

/// Begins a span for each event whose submission is traced. Its changes carry that span's context.
pub(super) fn begin(events: &mut [IngestEvent]) -> Vec<Option<Span>> {
    let ids: Vec<String> = events.iter().map(|event| event.id.to_string()).collect();
    let items = events.iter().zip(&ids).map(|(event, id)| Item {
        traceparent: &event.traceparent,
        id,
    });
    let items: Vec<_> = items.collect();
    let spans = Span::of_batch("apply feedback", Kind::Consumer, items.into_iter(), None);
    for (event, span) in events.iter_mut().zip(&spans) {
        event.applied_under = span
            .as_ref()
            .and_then(Span::traceparent)
            .as_ref()
            .map(Traceparent::to_string);
    }
    spans
}

/// Ends the spans with the outcomes of their events.
pub(super) fn end(spans: Vec<Option<Span>>, results: &[EventResult]) {
    for (span, result) in spans.into_iter().zip(results) {
        let Some(mut span) = span else { continue };
        match result {
            Ok(outcome) => {
                let state = outcome.state();
                span.set("emend.outcome", state.as_str_name());
                span.set("emend.kind", outcome.kind().as_str_name());
                if outcome.revision > 0 {
                    span.set("emend.revision", outcome.revision);
                }
                if state == OutcomeState::Applied && outcome.auto_applied {
                    span.event("promoted");
                }
            }
            Err(error) => span.fail(error.reason()),
        }
    }
}
